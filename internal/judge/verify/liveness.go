package verify

import (
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
)

// bound sets the limit for the next sale to another buyer. The allowed time counts from the fault's last
// action, or from the moment at which the stopped lock holder continued. The report shows the limit next to
// the observed time. The limit does not affect the verdict, since a machine may be slow.
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

// liveness says in words whether the next sale came within its limit. It returns "" without a fault.
func liveness(c *Cell) string {
	switch {
	case c.BoundMS == 0:
		return ""
	case c.NextSaleMS == nil:
		return fmt.Sprintf("no other buyer was sold a unit within %d ms", c.BoundMS)
	case *c.NextSaleMS > c.BoundMS:
		return fmt.Sprintf("late: the next sale came %d ms after the fault, and should have within %d ms", *c.NextSaleMS, c.BoundMS)
	}
	return fmt.Sprintf("the next sale came %d ms after the fault, of %d ms allowed", *c.NextSaleMS, c.BoundMS)
}
