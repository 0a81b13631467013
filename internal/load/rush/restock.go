package rush

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// The crowd after a restock is small, and asks for one unit each: whether a service that
// was sold out sells again does not depend on how many ask, nor for how much.
const (
	againStock  = 10
	againBuyers = 30
)

// Restocks restocks the product of a rush that holds, and sells it out again, so often:
// a small crowd at each of the processes in turn, since each has a memory of its own.
// What held and breaks now rests on something that a restock did not reset, such as
// "sold out" in a process's memory. The result is then that of the crowd that broke,
// and its reason begins with "after a restock"; else it is r.
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

// soldOut reports whether a crowd bought what there was, and nothing broke. It may have
// done so one buyer after the other: that buyers at once are kept apart was shown before.
func (r Result) soldOut() bool {
	return r.Verdict == verdict.Holds || r.oneByOne() && r.Leftover == 0 && r.Unknown+r.Failed == 0
}
