package verify

import (
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
)

// bound sets how soon after the fault somebody else was to be sold a unit: within
// allowed of the moment from which nothing of the fault stood in the way, when
// the last blow was struck or the holder went on. It is written beside what was
// seen and decides no verdict: a machine may be slow.
func (c reading) bound(allowed time.Duration) {
	var struck, free time.Time
	for _, e := range c.events {
		if e.Kind != history.Struck && (e.Kind != history.Resumed || struck.IsZero()) {
			continue
		}
		if struck.IsZero() {
			struck = e.At
		}
		if e.At.After(free) {
			free = e.At
		}
	}
	if !struck.IsZero() {
		c.BoundMS = free.Add(allowed).Sub(struck).Milliseconds()
	}
}

// liveness is the comparison in words, "" where nothing was struck.
func liveness(c *Cell) string {
	switch {
	case c.BoundMS == 0:
		return ""
	case c.NextSaleMS == nil:
		return fmt.Sprintf("nobody else was sold a unit, and should have been within %d ms", c.BoundMS)
	case *c.NextSaleMS > c.BoundMS:
		return fmt.Sprintf("late: the next sale came %d ms after the fault, and should have within %d ms", *c.NextSaleMS, c.BoundMS)
	}
	return fmt.Sprintf("the next sale came %d ms after the fault, of %d ms allowed", *c.NextSaleMS, c.BoundMS)
}
