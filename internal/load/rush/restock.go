package rush

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// The crowd after a restock is small and asks for one unit each: neither changes whether a
// service that was sold out sells again.
const (
	againStock  = 10
	againBuyers = 30
)

// Restocks restocks the product of a rush that holds, and sells it out again, times times for
// each process: a process may remember "sold out". It returns r if every crowd buys the whole
// stock. Else it returns the result of the crowd that broke; its reason begins with "after a
// restock".
func Restocks(ctx context.Context, c Config, r Result, times int) (Result, error) {
	c.Stock, c.Buyers, c.Sizes, c.Duration = min(c.Stock, againStock), min(c.Buyers, againBuyers), nil, 0
	processes := c.BaseURLs
	for i := range times * len(processes) {
		if r.Verdict != verdict.Holds {
			return r, nil
		}
		c.BaseURLs = processes[i%len(processes):][:1]
		again, err := c.sure(func() (Result, error) { return c.once(ctx) })
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

// soldOut reports whether a crowd bought the whole stock and nothing broke. Its buys need not
// overlap: the first crowd has shown that the strategy keeps buyers apart.
func (r Result) soldOut() bool {
	return r.Verdict == verdict.Holds || r.oneByOne() && r.Leftover == 0 && r.unserved == 0
}
