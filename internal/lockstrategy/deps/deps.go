// Package deps contains the values that a lock strategy gets from its caller: connections, time limits, an
// observer of lock events, and hooks. A scheduler that controls time, such as the explorer's, sets the hooks.
//
// The package opens no connection and knows no strategy. A strategy gets a Deps in its constructor and uses
// nothing else. So the explorer, which searches the interleavings of buyers, can control the code that the
// shop runs.
package deps

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/zookeeper"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

// Deps holds the dependencies of a strategy. A nil connection means that the server is not
// configured; Entry.Needs says which servers a strategy uses.
type Deps struct {
	DB      *gorm.DB
	Redis   redis.UniversalClient
	Redlock []redis.UniversalClient // independent nodes, an odd number of them

	Zookeeper *zookeeper.Session
	Etcd      *clientv3.Client

	// Lacks maps each need of a strategy that the database does not meet, such as SKIP LOCKED, to the
	// reason. The engine asked the server for it and did not go by the server's name.
	Lacks map[string]string

	// Certifies: the database is a cluster that refuses a COMMIT if another node has committed a
	// change of the same rows.
	Certifies bool

	// WhyMissing says why a server was not started. It may be nil.
	WhyMissing func(server string) string

	Settings Settings
	Now      func() time.Time
	Observe  Observer // may be nil

	// Pause replaces the sleep between two attempts, for a scheduler that decides when the next
	// attempt is made; nil means a sleep. Pause returns at once when ctx ends.
	Pause func(ctx context.Context, d time.Duration)

	// Renewal replaces the timer of a watchdog, which renews a lease, for a scheduler that decides when a
	// renewal is due. Nil means time.AfterFunc. The context that `renew` receives has the values of ctx,
	// the buyer's context, but does not end.
	Renewal func(ctx context.Context, d time.Duration, renew func(context.Context)) rlock.Timer

	// Unlock replaces the call of `unlock` after a buyer's critical section, for a scheduler that simulates
	// a forgotten unlock. Nil means that `unlock` is called at once.
	Unlock func(ctx context.Context, unlock func())

	// Clock replaces the timers of rlock and the timer that limits a release, for a scheduler under
	// which no timeout occurs by itself. Nil means the clock of package time.
	Clock rlock.Clock
}

// Settings apply to all strategies.
type Settings struct {
	// Wait is how long a buyer waits for its turn before it gets the answer "busy".
	Wait time.Duration
	// LeaseTTL is how long a lock in Redis or etcd lives without renewal. ZooKeeper uses the timeout of the
	// session in Deps instead. LeaseTTL must be far longer than one critical section, which takes about 1
	// ms on one machine.
	LeaseTTL time.Duration
	// Poll is the mean time between two attempts of the waiter that polls a lock. Only one waiter
	// per process polls. Each pause is drawn from [Poll/2, Poll*3/2).
	Poll time.Duration
	// Replicas is how many replicas of Redis must store a lock before it counts; 0 means none. It
	// applies to the strategies with Traits.Confirms.
	Replicas int
}

// ReplicateWithin is how long a strategy waits until the replicas have stored a lock. It gives the lock
// back if too few have by then. The time must be shorter than the read timeout of the Redis client, which
// would otherwise cut off every WAIT command.
func (s Settings) ReplicateWithin() time.Duration {
	return max(min(s.LeaseTTL/10, s.Wait/10, time.Second), 10*time.Millisecond)
}

// DefaultSettings returns the settings of a normal shop.
func DefaultSettings() Settings {
	return Settings{Wait: 5 * time.Second, LeaseTTL: 10 * time.Second, Poll: 2 * time.Millisecond}
}

// WithWait limits a buy. The result `start` is the time when the buy began. Once Settings.Wait has passed since
// then, the returned context ends with cause purchase.ErrBusy, even while the buyer waits for a lock, a
// connection or a row. Only a COMMIT that was sent may take longer.
func (d Deps) WithWait(ctx context.Context) (_ context.Context, start time.Time, cancel context.CancelFunc) {
	ctx, cancel = context.WithTimeoutCause(ctx, d.Settings.Wait, purchase.ErrBusy)
	return ctx, d.Now(), cancel
}

// Sleep waits for a duration, or until ctx ends.
func (d Deps) Sleep(ctx context.Context, nap time.Duration) {
	if d.Pause != nil {
		d.Pause(ctx, nap)
		return
	}
	select {
	case <-time.After(nap):
	case <-ctx.Done():
	}
}

// RenewAfter calls the function `renew` after the given duration. Each Reset of the returned timer causes
// another call.
func (d Deps) RenewAfter(ctx context.Context, after time.Duration, renew func(context.Context)) rlock.Timer {
	if d.Renewal != nil {
		return d.Renewal(ctx, after, renew)
	}
	return time.AfterFunc(after, func() { renew(context.WithoutCancel(ctx)) })
}

// ReleaseTimeout is the minimum time limit of a release. A buyer that has disconnected must still
// give its lock back, although its context has ended.
const ReleaseTimeout = 2 * time.Second

// Releasing returns a context for giving a lock back. It ends after the longer of Settings.Wait
// and ReleaseTimeout, and not with the buyer's context. An unreleased lock would block all buyers for the
// rest of its TTL.
func (d Deps) Releasing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	limit := max(d.Settings.Wait, ReleaseTimeout)
	if d.Clock == nil {
		return context.WithTimeout(ctx, limit)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := d.Clock.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

// InsertAll inserts the records of several sales like purchase.InsertAll, and also sets correct record ids
// on a Galera cluster.
func (d Deps) InsertAll(ctx context.Context, tx *gorm.DB, keys []string, receipts []*purchase.Receipt) error {
	err := purchase.InsertAll(ctx, tx, keys, d.Now(), receipts)
	if err == nil && d.Certifies {
		err = purchase.ReadIDs(ctx, tx, keys, receipts)
	}
	return err
}

// NewKey returns an Idempotency-Key for an order that came without one.
func NewKey(strategy string) string { return strategy + "-" + strings.ToLower(rand.Text()) }

// Section returns the naive critical section (read the stock, check it, write it), which records its sales
// under a strategy's name.
func (d Deps) Section(strategy string) purchase.Section {
	return purchase.Section{DB: d.DB, Strategy: strategy, Now: d.Now}
}
