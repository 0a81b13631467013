package own

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// ErrRaised is the error that a buyer's code meets in this event.
var ErrRaised = gate.ErrRaised

// raise returns the moves in which a buyer's code raises an error instead of sending its next SQL
// statement. Its process goes on and cleans up. Steps that clean up do not raise: they are what the
// event tests.
func (e events) raise(context.Context) (all []move, _ error) {
	for _, b := range e.buyers {
		i := slices.IndexFunc(b.gate, func(o *gate.Op) bool { return b.runnable(o) && o.Raises() })
		if i < 0 || b.crashed {
			continue
		}
		o := b.gate[i]
		m := ofBuyer(schedule.Raise, b, "its code raises an error before "+o.Name, func(context.Context, *buyer) error {
			return e.release(o, gate.Raise)
		})
		m.Global = e.x.spec.Shared // the error may wake another buyer of its process
		if o.Name == "COMMIT" {    // its transaction is rolled back
			m.Effect, m.Touches = schedule.Writes, gate.SQL
		}
		all = append(all, m)
	}
	return all, nil
}
