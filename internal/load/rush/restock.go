package rush

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/plural"
)

// The burst after a restock is small, and each buyer asks for one unit. That is enough to show
// whether a service that was sold out sells again.
const (
	againStock  = 10
	againBuyers = 30
)

// Numbers for the restocks during which buyers are buying.
const (
	metBuyers = 4         // number of buyers at each process
	metTimes  = 10        // number of restocks
	metStock  = 1_000_000 // units of the first restock, too many to buy before the next restock
)

// Inside says which buyers may be buying while a process of the service restocks.
type Inside int

const (
	NoBuyers  Inside = iota // none, since the service might not make buyers wait for the restock
	OwnBuyers               // buyers of the restocking process; it makes them wait for the restock
	AllBuyers               // buyers of any process
)

// Restocks restocks the product after a rush that holds, and sells it out again. It does so several times for
// each process, since a process may remember "sold out". Before each restock, some units have been sold and
// some are left. If Config.Inside allows it, buyers are buying during the restock. Restocks returns r if every
// burst buys the whole stock. Otherwise it returns the result of the burst that did not, with a reason that
// begins with "after a restock" or "during a restock". If the service refused every restock during which
// buyers were buying, the result is inconclusive.
func Restocks(ctx context.Context, c Config, r Result, times int) (Result, error) {
	c.Buyers, c.Sizes, c.Duration = min(c.Buyers, againBuyers), nil, 0
	c.Stock = min(c.Stock, againStock, max(1, int64(c.Buyers)-1)) // the load may have few buyers, and they must still be able to buy the whole stock
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
		if err == nil && again.Verdict == verdict.Holds {
			during, err = "after", c.leaveUnits(ctx)
			if err == nil {
				again, err = c.once(ctx)
			}
		}
		if again, err = c.settled(again, err); err != nil {
			return r, err
		}
		if during == "during" || !again.soldOut() {
			again.Reason = fmt.Sprintf("%s a restock of %s: %s", during, plural.Count(c.Stock, "unit"), again.Reason)
			return again, nil
		}
	}
	return r, nil
}

// leaveUnits restocks and sends two buyers, so that some units are left at the next restock. It ignores their
// answers: the burst after that restock shows whether the service kept old units.
func (c Config) leaveUnits(ctx context.Context) error {
	if _, err := c.restock(ctx); err != nil {
		return err
	}
	name := crowdName()
	c.sender(c.BaseURLs).AtOnce(ctx, []buyers.Buyer{{Name: name + "-1", Units: 1}, {Name: name + "-2", Units: 2}})
	return nil
}

// errSilent means that the service answered no buyer at all until all requests timed out.
var errSilent = errors.New("no buyer was answered")

// meetBuyers restocks several times while other buyers ask for one unit after another. The result holds if
// stock and records agree between these restocks. Lost sales do not count, since a restock deletes the records
// of acknowledged sales. The result is inconclusive if the service refused each restock. If the service
// answers no buyer, the function silent decides.
func (c Config) meetBuyers(ctx context.Context, processes []string) (r Result, _ error) {
	c.Shelf.BaseURL = c.BaseURLs[0]
	if c.Inside == OwnBuyers {
		processes = c.BaseURLs
	}
	if err := c.Shelf.Restock(ctx, c.Product, metStock); err != nil {
		return r, err
	}
	sender, name := c.sender(processes), crowdName()
	answered, answers := make(chan bool, metBuyers), []buyers.Answer{}
	sender.Answered = func(a buyers.Answer) {
		answers = append(answers, a)
		select {
		case answered <- a.Status > 0 || a.IsLost:
		default:
		}
	}
	going, stop := context.WithCancel(ctx)
	gone := make(chan struct{}) // closed when the last buyer has its answer
	go func() {
		defer close(gone)
		sender.Keep(ctx, buyers.Loop{
			Going: going, Duration: restockTimeout, Askers: metBuyers * len(processes),
			Buyer: func(n int64) buyers.Buyer { return buyers.Buyer{Name: fmt.Sprintf("%s-%d", name, n)} },
		})
	}()
	var began time.Time
	audited, met, err := c.restocks(ctx, func() error {
		for len(answered) > 0 {
			<-answered
		}
		began = time.Now()
		isSilent := true
		// After twice as many answers as buyers, each buyer that met the restock has its answer, unless it is
		// stuck. If every connection is refused, the service may still recover, so wait for the time-out.
		for n := 0; n < 2*metBuyers*len(processes) || isSilent && time.Since(began) < c.Timeout; n++ {
			select {
			case heard := <-answered:
				isSilent = isSilent && !heard
			case <-gone:
				return cmp.Or(ctx.Err(), fmt.Errorf("%d restocks with buyers inside took more than %s", metTimes, restockTimeout))
			}
		}
		if isSilent {
			return errSilent
		}
		return nil
	})
	ended := time.Now()
	stop()
	<-gone
	r = result(c.Strategy, answers, audited)
	r.MaxOverlap = Overlap(answers)
	switch {
	case errors.Is(err, errSilent):
		r.Verdict, r.Reason = c.silent(began, ended)
		return r, leftover{processes, c.Auditor, c.Product, c.Wait}.judge(ctx, answers, &r)
	case err != nil:
		return r, err
	case met == 0:
		r.Verdict, r.Reason = verdict.Inconclusive, fmt.Sprintf("no restock met a buyer: the service refused all %d while buyers were inside; the burst before held", metTimes)
		return r, nil
	}
	e := audit.Evidence{Sums: audited, Demand: audit.Demand(buyers.Answers(answers))}
	e.Count(buyers.Answers(answers))
	if r.Verdict, r.Reason = audit.Judge(e); !r.Verdict.IsBreak() { // Judge returns Holds only if the buyers ask for more than the stock; here they never do
		r.Verdict = verdict.Holds
	}
	return r, nil
}

// silent judges a service that answered no buyer between two times. The service has stalled if every server
// runs and this process had a processor. Otherwise the result is inconclusive.
func (c Config) silent(from, to time.Time) (verdict.Verdict, string) {
	reason := fmt.Sprintf("no buyer was answered for %.1f s", to.Sub(from).Seconds())
	switch starved := c.pulse.Delays().Mostly(from, to); {
	case starved != "":
		return verdict.Inconclusive, "the machine is too busy to tell slow from stuck: " + reason + ", and " + starved
	case !c.Healthy:
		return verdict.Inconclusive, reason + ", and it is not known whether every server runs"
	}
	return verdict.Stalled, reason + ", although every server runs"
}

// restocks restocks, calls `wait`, and audits, several times. It returns the first audit in which stock and
// records disagree, or else the last one, and the number of audits. Each restock puts a different number of
// units on sale. An error from `wait` ends the series.
func (c Config) restocks(ctx context.Context, wait func() error) (audited audit.Sums, met int, _ error) {
	for i := range int64(metTimes) {
		if err := wait(); err != nil {
			return audited, met, err
		}
		err := c.Shelf.Restock(ctx, c.Product, metStock-1-i)
		if errors.As(err, new(*TimeoutError)) { // the service refused the restock because buyers were buying
			continue
		}
		if err == nil {
			err = wait()
		}
		if err == nil {
			audited, err = c.Auditor.Audit(ctx, c.Product)
		}
		if met++; err != nil || audited.Drift != 0 {
			return audited, met, err
		}
	}
	return audited, met, ctx.Err()
}

// soldOut reports whether a burst bought the whole stock and broke nothing. Its purchases need not overlap:
// the first burst has tested that.
func (r Result) soldOut() bool {
	return r.Verdict == verdict.Holds || r.oneByOne() && r.Leftover == 0 && r.unserved == 0
}
