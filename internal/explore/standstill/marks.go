package standstill

import (
	"reflect"
	"runtime"

	"github.com/go-redsync/redsync/v4"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/rlock"
)

// marks are the function names that package standstill searches for in goroutine stacks. TestMarks makes real code wait
// in each of these functions, and searches for the name in its stack.
type marks struct {
	// ours marks a goroutine that runs a strategy: the name is in its stack, or in the stack's line about the goroutine
	// that started it.
	ours []string
	// listener marks the goroutine of a lock client that waits for messages without having sent a command. Package gate
	// counts these messages.
	listener string
	// sent marks a goroutine whose command the scheduler has released and counts.
	sent string
	// reads marks a goroutine that reads from a connection observed by package gate.
	reads string
	// connects marks a goroutine that is still setting up a connection.
	connects string
	// answer marks a goroutine that waits for an answer of PostgreSQL. Its state does not matter: after 15 ms, another
	// goroutine of the driver takes over the read.
	answer string
	// rollback marks a goroutine of database/sql that ends a transaction when its context ends.
	rollback string
}

// newMarks returns the marks of a strategy: the fixed names, the strategy's package, and the caller's functions.
func newMarks(strategy any, entries []any) marks {
	m := marks{
		ours: []string{
			packageOf(lockstrategy.Entry{}), // also matches the packages below it
			packageOf(rlock.Client{}),
			packageOf(redsync.Mutex{}),
		},
		listener: "/rlock.(*subscriber).listen",
		sent:     function((*gate.Gates).Pass),
		reads:    "/explore/gate.(*tap).Read",
		connects: "(*PubSub).conn",
		answer:   "/bgreader.(*BGReader).Read",
		rollback: "database/sql.(*Tx).awaitDone",
	}
	if own := packageOf(strategy); len(own) > 0 {
		m.ours = append(m.ours, own)
	}
	for _, f := range entries {
		m.ours = append(m.ours, function(f))
	}
	return m
}

// function returns the name of a function or method in stacks.
func function(f any) string {
	return runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
}

// packageOf returns the prefix that the names of a package's functions have in stacks. v is any value of the package.
// The result is empty if the value's type has no package.
func packageOf(v any) string {
	t := reflect.TypeOf(v)
	if t == nil {
		return ""
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath()
}
