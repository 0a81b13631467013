package own

import (
	"bytes"
	"context"
	"errors"
	"runtime/debug"
	"slices"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// ErrRaised is the error that the event `raise` returns in a buyer's code, or the value of its panic.
var ErrRaised = gate.ErrRaised

// raise returns the moves in which a buyer's code raises an error, or panics, instead of sending its next SQL
// statement. Its process continues and cleans up. The event does not replace a statement of this clean-up, which it
// tests.
func (e events) raise(context.Context) (all []move, _ error) {
	for _, b := range e.buyers {
		i := slices.IndexFunc(b.gate, func(o *gate.Op) bool { return b.runnable(o) && o.Raises() })
		if i < 0 || b.crashed {
			continue
		}
		o := b.gate[i]
		how := func(text string, d gate.Decision) move {
			m := ofBuyer(schedule.Raise, b, "its code "+text+" before "+o.Name, func(context.Context, *buyer) error {
				return e.release(o, d)
			})
			m.Global = e.x.spec.Shared // the error may wake another buyer of its process
			return m
		}
		m := how("raises an error", gate.Raise)
		if o.Name == "COMMIT" { // without this COMMIT, the database rolls the transaction back
			m.Effect, m.Touches = schedule.Writes, gate.SQL
		}
		all = append(all, m)
		if o.Panics() {
			m := how("panics", gate.Panic)
			m.Token += "-panic"
			all = append(all, m)
		}
	}
	return all, nil
}

// inBuy reports whether it is called in the goroutine of a buyer's Buy.
func inBuy() bool { return bytes.Contains(debug.Stack(), []byte(".(*run).buy(")) }

// recovered turns the event's panic into an error, as the shop's server does. Other panics continue.
func recovered(answer *error) {
	p := recover()
	if err, ok := p.(error); ok && errors.Is(err, ErrRaised) {
		*answer = err
	} else if p != nil {
		panic(p)
	}
}
