package rush

import (
	"context"
	"fmt"

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

// Restocks restocks the product of a rush that holds, and sells it out again. It does so several
// times for each process, since a process may remember "sold out". Each restock finds some units
// sold and some left. Restocks returns r if every burst buys the whole stock. Otherwise it
// returns the result of the burst that broke; its reason begins with "after a restock".
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
		again, err := Result{}, c.leaveUnits(ctx)
		if err == nil {
			again, err = c.once(ctx)
		}
		if again, err = c.settled(again, err); err != nil {
			return r, err
		}
		if !again.soldOut() {
			again.Reason = fmt.Sprintf("after a restock of %s: %s", audit.Count(c.Stock, "unit"), again.Reason)
			return again, nil
		}
	}
	return r, nil
}

// leaveUnits restocks, and sends two buyers, which leave units for the next restock. It ignores
// their answers, since the burst after that restock shows whether old units were kept.
func (c Config) leaveUnits(ctx context.Context) error {
	if _, err := c.restock(ctx); err != nil {
		return err
	}
	name := crowdName()
	c.sender(c.BaseURLs).AtOnce(ctx, []buyers.Buyer{{Name: name + "-1", Units: 1}, {Name: name + "-2", Units: 2}})
	return nil
}

// soldOut reports whether a burst bought the whole stock without a break. Its buys need not
// overlap, since the first burst has already tested that.
func (r Result) soldOut() bool {
	return r.Verdict == verdict.Holds || r.oneByOne() && r.Leftover == 0 && r.unserved == 0
}
