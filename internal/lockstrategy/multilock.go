package lockstrategy

import (
	"context"
	"errors"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/quorum"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/lockstrategy/rlocker"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

// multilock takes the lock of the strategy `redisson` on each of several Redis nodes, one node after another.
//
//   - Summary: the lock of `redisson` on all nodes
//   - Guarantees: It gives the same guarantees as `redisson`. The lock also survives the restart of all nodes
//     except one, since the holder has it on each.
//   - Breaks when: a pause outlasts the TTL; while any node is down, no buyer can buy
//   - How it breaks: The holder pauses for longer than the TTL and then commits. While any node is down, no
//     buyer can buy.
//   - Cost: The holder visits the nodes one after another, and again for the release: twice as many round trips
//     as there are nodes.
//   - Source: Redisson documentation, "Distributed locks and synchronizers", MultiLock;
//     org.redisson.RedissonMultiLock. The lock is rlock.Multi, in this repository
type multilock struct{ clients []*rlock.Client }

func newMultilock(d Deps) purchase.Strategy {
	m := multilock{}
	for _, node := range d.Redlock {
		m.clients = append(m.clients, rlocker.NewClient(d, node))
	}
	return lease.NewLocked(d, "multilock", m)
}

func (m multilock) locks(product string) (locks []*rlock.Lock) {
	for _, client := range m.clients {
		locks = append(locks, client.NewLock(rlocker.Name("multilock", product)))
	}
	return locks
}

func (m multilock) Lock(ctx context.Context, product string) (lease.Lease, error) {
	held, err := rlock.Multi(m.locks(product)...).Lock(ctx)
	if err != nil {
		return nil, deps.FailedFor(ctx, deps.Redlock, err)
	}
	return multilockLease{held}, nil
}

// Reset frees the lock on every node, for any holder.
func (m multilock) Reset(ctx context.Context, product string) error {
	locks := m.locks(product)
	return quorum.Each(ctx, len(locks), func(ctx context.Context, node int) error {
		_, err := locks[node].ForceUnlock(ctx)
		return err
	})
}

func (m multilock) Close() error {
	var errs []error
	for _, client := range m.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}

type multilockLease struct{ lease *rlock.MultiLease }

func (l multilockLease) Token() string { return l.lease.Leases()[0].Holder() }

func (l multilockLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return rlocker.Within(ctx, l.lease.Context())
}

func (l multilockLease) Release(ctx context.Context) error {
	return rlocker.Released(deps.Redlock, l.lease.Unlock(ctx))
}

func multilockEntry() Entry {
	return Entry{
		Name: "multilock", Family: redisLocks,
		Needs:   []Need{NeedsRedlock},
		Scripts: redisscript.Rlock(),
		New:     newMultilock,
		Traits: Traits{
			Witnesses: []WitnessSearch{{Flags: "--events expire --bound 1", Long: "it runs for a minute until it has seen every order"}},
			Leased:    true,
			WaitsFor:  WaitLock,
			Lock:      LockPromise{Renewed: true},
			CaughtBy:  map[string]string{"ExpiredLease": wantTwoHolders},
		},
	}.holdsExcept(promise.Promise{promise.Pause: verdict.Oversold, promise.NodesDown: verdict.Stalled})
}
