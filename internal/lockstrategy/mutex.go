package lockstrategy

import (
	"context"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/purchase"
)

// mutexLock gives a product to the buyer at the front of its queue.
//
//   - Summary: one mutex per product, in memory
//   - Guarantees: Mutual exclusion per product, within one process. Buyers get the lock in order of arrival.
//   - Breaks when: a second process sells the product
//   - How it breaks: A second process has its own mutex, which does not exclude buyers of the first process.
//   - Cost: It costs almost nothing. It is the first strategy to fail when the shop grows.
//   - Source: The Go Memory Model, section Locks, https://go.dev/ref/mem#locks
//   - Notes: It is a semaphore of weight 1 and not a sync.Mutex. A buyer cannot give up waiting for a
//     sync.Mutex, and every wait in this shop has a limit.
type mutexLock struct{ lines *waiting.Lines }

// NewMutex returns the strategy. It needs only the database.
func NewMutex(d Deps) *Locked {
	return lease.NewLocked(d, "mutex", mutexLock{waiting.NewLines(1)})
}

func (m mutexLock) Lock(ctx context.Context, product string) (lease.Lease, error) {
	place, err := m.lines.Front(ctx, product)
	if err != nil {
		return nil, err
	}
	return mutexLease{place}, nil
}

type mutexLease struct{ place *waiting.Place }

func (l mutexLease) Token() string { return "" }

func (l mutexLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx) // a lock in memory cannot be lost
}

func (l mutexLease) Release(context.Context) error {
	l.place.Leave()
	return nil
}

func mutexEntry() Entry {
	return Entry{
		Name: "mutex", Family: inProcess,
		New: func(d Deps) purchase.Strategy { return NewMutex(d) },
		Traits: Traits{
			WaitsFor: WaitLock,
			CaughtBy: map[string]string{"TwoProcesses": wantSoldTwiceOrTwoHolders, "MixedUnits": wantSoldTwiceOrTwoHolders},
		},
	}.holdsExcept(promise.BreaksFrom(promise.TwoProcesses)).withPromiseOn(dialect.SQLite, []promise.Condition{promise.Duplicates}, "").
		withPromiseAboveReadCommitted([]promise.Condition{promise.TwoProducts}, "") // with two buyers in two processes, the database may refuse one
}
