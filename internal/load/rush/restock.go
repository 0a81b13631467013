package rush

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
)

// The burst after a restock is small, and each buyer asks for one unit. That is enough to show
// whether a service that was sold out sells again.
const (
	againStock  = 10
	againBuyers = 30
)

// The buyers that restocks meet.
const (
	metBuyers = 4         // at each process
	metTimes  = 10        // restocks
	metStock  = 1_000_000 // units of the first, more than they can buy before the next
)

// Inside says which buyers may be inside while a process restocks.
type Inside int

const (
	NoBuyers  Inside = iota // none: it is not known whether the service holds them back
	OwnBuyers               // those of the process that restocks, which holds them back
	AllBuyers               // those of any process
)

// Restocks restocks the product of a rush that holds, and sells it out again. It does so several
// times for each process, since a process may remember "sold out". Each restock finds some units
// sold and some left, and buyers inside if Config.Inside allows that. Restocks returns r if every
// burst buys the whole stock. Otherwise it returns the result of the burst that broke; its reason
// begins with "after a restock" or "during a restock".
func Restocks(ctx context.Context, c Config, r Result, times int) (Result, error) {
	c.Buyers, c.Sizes, c.Duration = min(c.Buyers, againBuyers), nil, 0
	c.Stock = min(c.Stock, againStock, max(1, int64(c.Buyers)-1)) // a few buyers of a steady load must sell it out
	defer c.startPulse()()
	processes := c.BaseURLs
	for i := range times * len(processes) {
		if r.Verdict != verdict.Holds {
			return r, nil
		}
		c.BaseURLs = processes[i%len(processes):][:1]
		during, again, err := "during", Result{Verdict: verdict.Holds}, error(nil)
		if c.Inside != NoBuyers {
			again, err = c.meetBuyers(ctx, processes)
		}
		if err == nil && !again.Verdict.IsBreak() {
			during, err = "after", c.leaveUnits(ctx)
			if err == nil {
				again, err = c.once(ctx)
			}
		}
		if again, err = c.settled(again, err); err != nil {
			return r, err
		}
		if !again.soldOut() {
			again.Reason = fmt.Sprintf("%s a restock of %s: %s", during, audit.Count(c.Stock, "unit"), again.Reason)
			return again, nil
		}
	}
	return r, nil
}

// leaveUnits restocks, and sends two buyers, which leave units for the next restock. It ignores their
// answers, since the burst after that restock shows whether old units were kept.
func (c Config) leaveUnits(ctx context.Context) error {
	if _, err := c.restock(ctx); err != nil {
		return err
	}
	name := crowdName()
	c.sender(c.BaseURLs).AtOnce(ctx, []buyers.Buyer{{Name: name + "-1", Units: 1}, {Name: name + "-2", Units: 2}})
	return nil
}

// meetBuyers restocks several times while buyers are inside, each of which asks for one unit after the
// other. The result has the verdict of stock and records between these restocks. Lost sales are not among
// it: a restock deletes the records of acknowledged sales.
func (c Config) meetBuyers(ctx context.Context, processes []string) (r Result, _ error) {
	c.Shelf.BaseURL = c.BaseURLs[0]
	if c.Inside == OwnBuyers {
		processes = c.BaseURLs
	}
	if err := c.Shelf.Restock(ctx, c.Product, metStock); err != nil {
		return r, err
	}
	sender, name := c.sender(processes), crowdName()
	answered, answers := make(chan struct{}, metBuyers), []buyers.Answer{}
	sender.Answered = func(a buyers.Answer) {
		answers = append(answers, a)
		select {
		case answered <- struct{}{}:
		default:
		}
	}
	going, stop := context.WithCancel(ctx)
	var inside sync.WaitGroup
	inside.Go(func() {
		sender.Keep(ctx, buyers.Loop{
			Going: going, Duration: restockTimeout, Askers: metBuyers * len(processes),
			Buyer: func(n int64) buyers.Buyer { return buyers.Buyer{Name: fmt.Sprintf("%s-%d", name, n)} },
		})
	})
	audited, err := c.restocks(ctx, func() {
		for len(answered) > 0 {
			<-answered
		}
		for range 2 * metBuyers * len(processes) { // so that each buyer that the restock met has its answer
			select {
			case <-answered:
			case <-ctx.Done():
			}
		}
	})
	stop()
	inside.Wait()
	if err != nil {
		return r, err
	}
	e := audit.Evidence{Sums: audited, Demand: audit.Demand(buyers.Answers(answers))}
	e.Count(buyers.Answers(answers))
	r = result(c.Strategy, answers, audited)
	r.Verdict, r.Reason = audit.Judge(e)
	return r, nil
}

// restocks restocks, waits, and audits, in turn. It returns the first audit in which stock and records do not
// agree, or the last one. No two of its restocks put the same number of units on sale.
func (c Config) restocks(ctx context.Context, wait func()) (audited audit.Sums, err error) {
	for i := range int64(metTimes) {
		wait()
		err := c.Shelf.Restock(ctx, c.Product, metStock-1-i)
		if errors.As(err, new(*TimeoutError)) { // refused because of the buyers
			continue
		}
		if err == nil {
			wait()
			audited, err = c.Auditor.Audit(ctx, c.Product)
		}
		if err != nil || audited.Drift != 0 {
			return audited, err
		}
	}
	return audited, ctx.Err()
}

// soldOut reports whether a burst bought the whole stock without a break. Its buys need not
// overlap, since the first burst has already tested that.
func (r Result) soldOut() bool {
	return r.Verdict == verdict.Holds || r.oneByOne() && r.Leftover == 0 && r.unserved == 0
}
