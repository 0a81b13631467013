package backend

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A Hold is a lock or an open transaction on a connection of the programs.
type Hold struct {
	Conn *wire.Conn
	What string // description for the user
}

// Holdings lists the locks and transactions on the programs' connections. It knows which of them existed before any
// buyer came. Only one goroutine may use it.
type Holdings struct {
	conns    *gates.Connections
	backends Backends
	before   map[Hold]bool
}

// NewHoldings returns the holdings of the programs behind these gates.
func NewHoldings(g *gates.Gates, backends Backends) *Holdings {
	return &Holdings{conns: g.Connections, backends: backends}
}

// Now asks the databases for the holds of all connections. It returns them in the order of Connections.InOrder.
func (x *Holdings) Now(ctx context.Context) (all []Hold, err error) {
	held := map[string]map[int64][]string{}
	for _, c := range x.conns.InOrder() {
		if held[c.Protocol] == nil {
			if held[c.Protocol], err = x.backends.Of(c).Held(ctx); err != nil {
				return nil, err
			}
		}
		for _, what := range held[c.Protocol][c.ID] {
			all = append(all, Hold{c, what})
		}
	}
	return all, nil
}

// Remember records the current holds as the programs' own. The caller ensures that no buyer is inside a program.
func (x *Holdings) Remember(ctx context.Context) error {
	all, err := x.Now(ctx)
	x.before = map[Hold]bool{}
	for _, h := range all {
		x.before[h] = true
	}
	return err
}

// Left returns the holds that a run has left behind. A hold that Remember has recorded is the program's own. So is one
// on a connection that carried no command through a gate in this run, for instance the lock of an elected leader.
func (x *Holdings) Left(ctx context.Context) ([]Hold, error) {
	all, err := x.Now(ctx)
	return slices.DeleteFunc(all, func(h Hold) bool { return x.before[h] || !x.conns.Touched(h.Conn) }), err
}

// Dirty returns the connections of the holds that Left returns.
func (x *Holdings) Dirty(ctx context.Context) ([]*wire.Conn, error) {
	all, err := x.Left(ctx)
	return Conns(all), err
}

// Conns returns the connections of holds.
func Conns(all []Hold) (conns []*wire.Conn) {
	for _, h := range all {
		conns = append(conns, h.Conn)
	}
	return conns
}
