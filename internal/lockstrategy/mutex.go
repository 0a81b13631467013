package lockstrategy

import (
	"context"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/purchase"
)

func mutexEntry() Entry {
	return Entry{
		Name: "mutex", Family: inProcess,
		Summary:     "one mutex a product, in memory",
		Guarantees:  "one buyer of a product at a time within one process, first come, first served",
		BreaksWhen:  "a second process",
		HowItBreaks: "A second process has a mutex of its own.",
		Cost:        "next to nothing; it is the first to fail when the shop grows",
		Source:      "The Go Memory Model, section Locks, https://go.dev/ref/mem#locks",
		Notes:       "It is a semaphore of weight 1 and not a sync.Mutex: a buyer cannot give up waiting for a sync.Mutex, and here every wait is bounded.",
		New:         func(d Deps) purchase.Strategy { return NewMutex(d) },
		Traits: Traits{
			Path:     sizing.Path{SQL: 5, RowSQL: 2, Keeps: sizing.Process, TurnSQL: 5, TurnCommits: 1},
			InMemory: true,
			WaitsFor: ALock,
			CaughtBy: map[string]string{"TwoProcesses": soldOrTwoIn},
		},
	}.holdsBut(promise.BreaksFrom(promise.TwoProcesses)).on(dialect.SQLite, []promise.Condition{promise.Duplicates}, "").
		aboveReadCommitted([]promise.Condition{promise.TwoProducts}, "") // a buyer at each process ends it: one may be refused
}

// NewMutex needs the database.
func NewMutex(d Deps) *Locked {
	return lease.NewLocked(d, "mutex", mutexLocker{waiting.NewLines(1)})
}

// mutexLocker holds a product by the front place in its line.
type mutexLocker struct{ lines *waiting.Lines }

func (m mutexLocker) Lock(ctx context.Context, product string) (lease.Lease, error) {
	place, err := m.lines.Front(ctx, product)
	if err != nil {
		return nil, err
	}
	return mutexLease{place}, nil
}

type mutexLease struct{ place *waiting.Place }

func (l mutexLease) Token() string { return "" }

func (l mutexLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx) // memory forgets nothing
}

func (l mutexLease) Release(context.Context) error {
	l.place.Leave()
	return nil
}
