package lockstrategy

import (
	"context"
	"errors"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/quorum"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

func multilockEntry() Entry {
	return Entry{
		Name: "multilock", Family: redisHistory,
		Summary:     "redisson on all nodes",
		Guarantees:  "as redisson, and it outlives the restart of all nodes but one: the holder has the lock on each",
		BreaksWhen:  "pause longer than the TTL; any node down: busy",
		HowItBreaks: "The holder is paused for longer than the TTL and goes on with its commit. With any node down nobody can buy.",
		Cost:        "the nodes one after the other, there and back: as many round trips as there are nodes, twice a buy",
		Source: `Redisson documentation, "Distributed locks and synchronizers", MultiLock; org.redisson.RedissonMultiLock. ` +
			`The lock is rlock.Multi, in this repository`,
		Needs:   []Need{NeedsRedlock},
		Scripts: redisscript.Rlock(),
		New:     func(d Deps) purchase.Strategy { return NewMultilock(d) },
		Traits: Traits{
			Path:      sizing.Path{SQL: 5, Lock: 10, RowSQL: 2, Keeps: sizing.All, TurnSQL: 5, TurnLock: 10, TurnCommits: 1, Nodes: sizing.AllInTurn},
			InMemory:  true,
			Witnesses: []Witness{{Flags: "--events expire --bound 1", Long: "it runs for a minute until it has seen every order"}},
			Leased:    true,
			WaitsFor:  ALock,
			Lock:      LockPromise{Renewed: true},
			CaughtBy:  map[string]string{"ExpiredLease": twoHolders},
		},
	}.holdsBut(promise.Promise{promise.Pause: verdict.Oversold, promise.NodesDown: verdict.Stalled})
}

// NewMultilock needs the database and the Redlock nodes. Close it when it is not
// needed any more: it listens.
func NewMultilock(d Deps) *Locked {
	m := &multilockLocker{}
	for _, node := range d.Redlock {
		m.clients = append(m.clients, newRlock(d, node))
	}
	return lease.NewLocked(d, "multilock", m)
}

type multilockLocker struct{ clients []*rlock.Client }

func (m *multilockLocker) locks(product string) (locks []*rlock.Lock) {
	for _, client := range m.clients {
		locks = append(locks, client.NewLock(rlockName("multilock", product)))
	}
	return locks
}

func (m *multilockLocker) Lock(ctx context.Context, product string) (lease.Lease, error) {
	lease, err := rlock.Multi(m.locks(product)...).Lock(ctx)
	if err != nil {
		return nil, rlockError(ctx, deps.Redlock, err)
	}
	return multilockLease{lease}, nil
}

// Reset frees the lock on every node, of any holder.
func (m *multilockLocker) Reset(ctx context.Context, product string) error {
	ctx, cancel := context.WithTimeout(ctx, deps.ReleaseTimeout)
	defer cancel()
	var errs []error
	for _, lock := range m.locks(product) {
		_, err := lock.ForceUnlock(ctx)
		errs = append(errs, err)
	}
	return quorum.Majority(len(m.clients), errs)
}

// Close ends the subscriptions.
func (m *multilockLocker) Close() error {
	var errs []error
	for _, client := range m.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}

type multilockLease struct{ lease *rlock.MultiLease }

func (l multilockLease) Token() string { return l.lease.Leases()[0].Holder() }

func (l multilockLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return within(ctx, l.lease.Context())
}

func (l multilockLease) Release(ctx context.Context) error {
	err := l.lease.Unlock(ctx)
	if errors.Is(err, rlock.ErrNotHeld) {
		return lease.ErrNotHeld
	}
	return deps.Failed(deps.Redlock, err)
}
