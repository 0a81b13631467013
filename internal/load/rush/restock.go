package rush

import (
	"context"
	"errors"
	"fmt"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
)

// The crowd after a restock is small and asks for one unit each: neither changes whether a
// service that was sold out sells again.
const (
	againStock  = 10
	againBuyers = 30
)

// Restocks restocks the product of a rush that holds, and sells it out again, times times for
// each process: a process may remember "sold out". Each restock finds some units sold and others
// left, wherever the service keeps them. Restocks returns r if every crowd buys the whole stock.
// Otherwise it returns the result of the crowd that broke; its reason begins with "after a
// restock".
func Restocks(ctx context.Context, c Config, r Result, times int) (Result, error) {
	c.Stock, c.Buyers, c.Sizes, c.Duration = min(c.Stock, againStock), min(c.Buyers, againBuyers), nil, 0
	processes := c.BaseURLs
	for i := range times * len(processes) {
		if r.Verdict != verdict.Holds {
			return r, nil
		}
		c.BaseURLs = processes[i%len(processes):][:1]
		again, err := Result{}, c.leaveUnits(ctx)
		if err == nil {
			again, err = c.sure(func() (Result, error) { return c.once(ctx) })
		}
		if errors.As(err, new(*RestockError)) {
			return c.notRestocked(err), nil
		}
		if err != nil {
			return r, err
		}
		if !again.soldOut() {
			again.Reason = fmt.Sprintf("after a restock of %d units: %s", c.Stock, again.Reason)
			return again, nil
		}
	}
	return r, nil
}

// leaveUnits restocks, and sends two buyers who leave units for the next restock to find. It
// ignores their answers: the crowd after that restock shows whether units were kept.
func (c Config) leaveUnits(ctx context.Context) error {
	if _, err := c.restock(ctx); err != nil {
		return err
	}
	name := crowdName()
	c.at(c.BaseURLs).AtOnce(ctx, []buyers.Buyer{{Name: name + "-1", Units: 1}, {Name: name + "-2", Units: 2}})
	return nil
}

// soldOut reports whether a crowd bought the whole stock and nothing broke. Its buys need not
// overlap: the first crowd has shown that the strategy keeps buyers apart.
func (r Result) soldOut() bool {
	return r.Verdict == verdict.Holds || r.oneByOne() && r.Leftover == 0 && r.unserved == 0
}
