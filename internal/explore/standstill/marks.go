package standstill

import (
	"reflect"
	"runtime"

	"github.com/go-redsync/redsync/v4"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/rlock"
)

// marks are what stacks are asked for, in this one place. TestMarks parks the real
// thing in each and looks for them.
type marks struct {
	// ours: the goroutine runs a strategy, by a function in its stack or in the line
	// that says who started it.
	ours [][]byte
	// listener: it is a lock client's one goroutine that waits for the network
	// without a command of its own on the way. What is on its way to it is counted
	// by gate.PubSub.
	listener []byte
	// sent: it has a command that was let go; of those the scheduler keeps account.
	sent []byte
	// reads: it waits in the tap of a connection ...
	reads []byte
	// connects: ... which it is still setting up.
	connects []byte
	// answer: it waits for an answer of PostgreSQL, in whatever state: what takes longer
	// than 15 ms another goroutine of the driver reads.
	answer []byte
	// rollback: it will end a transaction whose context has ended.
	rollback []byte
}

// newMarks adds the strategy's package and the caller's functions to what runs a
// strategy.
func newMarks(strategy any, entries []any) marks {
	m := marks{
		ours: [][]byte{
			packageOf(lockstrategy.Entry{}), // a prefix of the rooms below it, too
			packageOf(rlock.Client{}),
			packageOf(redsync.Mutex{}),
		},
		listener: []byte("/rlock.(*subscriber).listen"),
		sent:     function((*gate.Gates).Pass),
		reads:    []byte("/explore/gate.(*tap).Read"),
		connects: []byte("(*PubSub).conn"),
		answer:   []byte("/bgreader.(*BGReader).Read"),
		rollback: []byte("database/sql.(*Tx).awaitDone"),
	}
	if own := packageOf(strategy); len(own) > 0 {
		m.ours = append(m.ours, own)
	}
	for _, f := range entries {
		m.ours = append(m.ours, function(f))
	}
	return m
}

// function is how stacks name a function or method.
func function(f any) []byte {
	return []byte(runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name())
}

// packageOf is how the functions of a value's package begin in stacks; empty where its
// type has none.
func packageOf(v any) []byte {
	t := reflect.TypeOf(v)
	if t == nil {
		return nil
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return []byte(t.PkgPath())
}
