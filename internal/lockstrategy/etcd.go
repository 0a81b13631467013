package lockstrategy

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/purchase"
)

// etcdLock gives each buyer a lease of etcd and a key that lives as long as the lease. The buyer with the
// oldest key has the lock. The other buyers' clients watch the keys that are older than their own.
//
//   - Summary: lease + concurrency.Mutex
//   - Guarantees: Mutual exclusion per product while the lease of the holder lives. Buyers get the lock in
//     order of arrival, across processes. A crashed process releases the lock when its lease expires. When
//     the client finds that its lease has ended, it cancels the context of the critical section.
//   - Breaks when: a pause outlasts the lease
//   - How it breaks: A pause between the last check of the context and the commit outlasts the lease. A
//     client that is cut off from etcd notices late. At first it assumes a lease of five seconds. After the first
//     answer to a keep-alive, half a second after the grant, it checks once a second whether the
//     lease has expired (clientv3/lease.go, v3.6.5, defaultTTL and deadlineLoop). The next holder gets the
//     lock before the client notices.
//   - Cost: One purchase takes three writes to etcd's log: the lease, the key, and their removal. A buyer that
//     has just arrived may learn up to 100 ms late that the lock is free. A lease lives for at least two whole
//     seconds. If the leader of a cluster dies, a buyer that comes before the election may be refused after seven
//     seconds (ServerConfig.ReqTimeout), or when its wait ends.
//   - Source: etcd documentation, v3.6, "Lock", and concurrency.Mutex of go.etcd.io/etcd/client/v3/concurrency.
//     Up to v3.4.14, Mutex did not check the lease again after the wait (issue 11456); it does now
//   - Notes: Each buyer has its own lease. A Mutex belongs to its lease, and two buyers under one lease would
//     both hold it.
type etcdLock struct {
	strategy string
	client   *clientv3.Client
	ttl      int64 // seconds
	notified waiting.Notified
}

// etcdWidth is the maximum number of buyers of one process that queue in etcd at once. A Mutex watches from
// the current revision on. etcd treats such a watch as lagging, and serves lagging watches only every 100
// ms. So a buyer whose turn comes in between waits for the next 100 ms tick. Sales per second of 200
// buyers: 20 with 1 buyer in the queue, 40 with 8, 145 with 32, 145 with 64 (shop rush --engine local
// --strategy etcd, two cores).
const etcdWidth = 32

func newEtcd(d Deps) purchase.Strategy { return lease.NewLocked(d, "etcd", newEtcdLock(d, "etcd")) }

func newEtcdLock(d Deps, strategy string) etcdLock {
	seconds := (d.Settings.LeaseTTL + time.Second - 1) / time.Second // rounded up
	return etcdLock{strategy, d.Etcd, int64(seconds), waiting.NewNotified(etcdWidth)}
}

// prefix returns the common start of a product's keys. It quotes the name, so that the queue of the product
// "a" contains no key of "a/b".
func (e etcdLock) prefix(product string) string {
	return "shop/lock/" + e.strategy + "/" + strconv.Quote(product)
}

func (e etcdLock) Lock(ctx context.Context, product string) (lease.Lease, error) {
	return e.notified.Obtain(ctx, product, func() (lease.Lease, error) {
		held, err := e.queue(ctx, product)
		if err != nil {
			return nil, failedEtcd(ctx, err)
		}
		return held, nil
	})
}

// queue waits once in etcd's queue, the keys of the product. It returns waiting.ErrNotInLine if the buyer's
// key was gone after the wait. After an error it leaves no key behind.
func (e etcdLock) queue(ctx context.Context, product string) (lease.Lease, error) {
	grant, err := e.client.Grant(ctx, e.ttl)
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(e.client, concurrency.WithLease(grant.ID)) // keeps the lease alive
	if err != nil {
		return nil, err
	}
	lease := &etcdLease{session: session, mutex: concurrency.NewMutex(session, e.prefix(product))}
	if err := lease.mutex.Lock(ctx); err != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), deps.ReleaseTimeout)
		defer cancel()
		_ = lease.Release(late) // the key is removed with the lease, at the latest when the lease expires
		if errors.Is(err, concurrency.ErrSessionExpired) || errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil, waiting.ErrNotInLine
		}
		return nil, err
	}
	return lease, nil
}

// failedEtcd returns the cause of ctx if ctx has ended, and otherwise an error that says that etcd
// is down. The server has the same deadline as ctx, and its timer may fire a moment earlier. So an
// error of that timer counts as the end of ctx.
func failedEtcd(ctx context.Context, err error) error {
	if end, ok := ctx.Deadline(); ok && status.Code(err) == codes.DeadlineExceeded && time.Until(end) < 50*time.Millisecond {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return deps.Failed(deps.Etcd, err)
}

// Reset revokes the lease of every holder and waiter, which removes their keys.
func (e etcdLock) Reset(ctx context.Context, product string) error {
	line, err := e.client.Get(ctx, e.prefix(product)+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return deps.Failed(deps.Etcd, err)
	}
	for _, key := range line.Kvs {
		_, err := e.client.Revoke(ctx, clientv3.LeaseID(key.Lease))
		if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return deps.Failed(deps.Etcd, err)
		}
	}
	return nil
}

type etcdLease struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func (l *etcdLease) Token() string { return strconv.FormatInt(l.Fence(), 10) }

// Fence is the create revision of the lock's key. Revisions count all writes to the cluster and
// only grow, so a later holder has a higher revision.
func (l *etcdLease) Fence() int64 {
	owner := l.mutex.IsOwner()
	return owner.GetCompare().GetCreateRevision()
}

func (l *etcdLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return lease.UntilLost(ctx, l.session.Done())
}

// Release revokes the lease, which also removes the key: one write instead of two.
func (l *etcdLease) Release(ctx context.Context) error {
	l.session.Orphan()
	_, err := l.session.Client().Revoke(ctx, l.session.Lease())
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return lease.ErrNotHeld
	}
	return deps.Failed(deps.Etcd, err)
}

func etcdEntry() Entry {
	return Entry{
		Name: "etcd", Family: coordination,
		Needs: []Need{NeedsEtcd},
		NoPromise: map[promise.Condition]string{
			promise.Partition: "the client and etcd have separate timers for the lease, and either may expire first; in 43 of 43 runs etcd's did, and the strategy oversold",
		},
		New: newEtcd,
		Traits: Traits{
			Leased:   true,
			WaitsFor: WaitLock,
			Lock:     LockPromise{Renewed: true, SharedUnder: []promise.Condition{promise.LeaseRevoked}},
			CaughtBy: map[string]string{"ExpiredLease": wantTwoHolders},
		},
	}.holdsExcept(promise.Promise{promise.Pause: verdict.Oversold, promise.Partition: ""})
}
