package rest

import (
	"context"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/target/backend"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Waits asks the servers which of the commands that the explorer has released wait there for another connection.
type Waits struct {
	Gates    *gates.Gates
	Backends backend.Backends
}

// ending reports whether a server has still to roll back the transaction of a connection that its program closed. A
// buyer may wait for that. For each connection that has just ended, it calls the function `ended`, and also returns
// true, so that Settle looks again.
func (w Waits) ending(ctx context.Context, ended func(*wire.Conn)) (bool, error) {
	closed := w.Gates.Connections.Ending()
	for _, c := range closed {
		gone, err := w.Backends.Of(c).Gone(ctx, c.ID)
		if err != nil || !gone {
			return true, err
		}
		ended(c)
		w.Gates.Connections.Ended(c)
	}
	return len(closed) > 0, nil
}

// all reports whether every released command waits in its server for another connection. A command whose wait the
// explorer has ended does not count as waiting, although the server may notice the end later.
func (w Waits) all(ctx context.Context, silence time.Duration) (bool, error) {
	flying := w.Gates.Table.Now().Flying
	for _, c := range w.Gates.Connections.InOrder() { // the servers must know the programs' connections: a command waits for a buyer if it waits for one of these
		w.Backends.Of(c).Adopt(c.ID)
	}
	if len(flying) == 0 {
		return true, nil
	}
	if silence < slowAnswer && slices.ContainsFunc(flying, func(o *gates.Op) bool { return !o.Waits }) {
		return false, nil
	}
	named := slices.ContainsFunc(flying, func(o *gates.Op) bool { return o.Named })
	seen := map[string]map[int64]bool{}
	all := true
	for _, o := range flying {
		protocol := o.Conn().Protocol
		if seen[protocol] == nil {
			ids, err := w.Backends[protocol].Waiting(ctx, named)
			if err != nil {
				return false, err
			}
			if ids == nil {
				ids = map[int64]bool{}
			}
			seen[protocol] = ids
		}
		o.Waits = seen[protocol][o.Conn().ID] && !o.Interrupted
		if o.Waits && o.Named {
			granted, err := w.Backends[protocol].Granted(ctx, o)
			if err != nil {
				return false, err
			}
			o.Waits = !granted
		}
		all = all && o.Waits
	}
	return all, nil
}

// RunOut ends the wait of a command in its server, as a time-out does.
func (w Waits) RunOut(ctx context.Context, o *gates.Op) error {
	o.Interrupted, o.Waits = true, false
	return w.Backends.Of(o.Conn()).Interrupt(ctx, o.Conn().ID)
}
