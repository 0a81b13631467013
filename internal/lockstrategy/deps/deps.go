// Package deps is what a lock strategy is built from: connections, waits and times,
// an observer, and the hooks by which a scheduler decides when time passes.
//
// The room holds no connection of its own and knows no strategy. A strategy gets a
// Deps by its constructor and reaches for nothing else; this is what lets the
// explorer gate the code that the shop runs.
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

// Deps is what a strategy may be built from. A nil connection means that the
// server is not configured; Entry.Needs says which ones a strategy uses.
type Deps struct {
	DB      *gorm.DB
	Redis   redis.UniversalClient
	Redlock []redis.UniversalClient // independent nodes, an odd number of them

	Zookeeper *zookeeper.Session
	Etcd      *clientv3.Client

	// Lacks says what the database cannot do, and why, by the need of it: what the
	// server itself said when it was opened decides, and not its name.
	Lacks map[string]string

	// Certifies: a COMMIT is compared with those of other nodes of a cluster, and may be
	// refused in favour of one of them.
	Certifies bool

	// Absent says why a server that could have been started was not; may be nil.
	Absent func(server string) string

	Settings Settings
	Now      func() time.Time
	Observe  Observer // may be nil

	// Pause stands in for the naps between two tries, for a scheduler that
	// decides by itself when the next try is made; nil sleeps. It returns at
	// once when ctx ends.
	Pause func(ctx context.Context, d time.Duration)

	// Renewal stands in for the timer of a watchdog, for a scheduler that decides
	// by itself when a renewal is due; nil takes time.AfterFunc. ctx is the
	// buyer's, for its values: the one that renew is called with does not end.
	Renewal func(ctx context.Context, d time.Duration, renew func(context.Context)) rlock.Timer

	// Clock stands in for the timers of rlock and for the time-out of a release,
	// for a scheduler under which no time-out comes by itself; nil takes the clock
	// of package time.
	Clock rlock.Clock
}

// Settings are the waits and times of every strategy.
type Settings struct {
	// Wait is how long a buyer waits for its turn before it is answered busy.
	Wait time.Duration
	// LeaseTTL is how long a lock in Redis or etcd lives without its holder;
	// in ZooKeeper that is the time-out of the session in Deps. It must be far
	// above the time of one section (about 1 ms on one machine).
	LeaseTTL time.Duration
	// Poll is the mean time between two tries of the one waiter of this
	// process that polls a lock; each pause is drawn from [Poll/2, Poll*3/2).
	Poll time.Duration
	// Replicas is how many replicas of Redis must have a grant before it counts; 0 asks
	// none. For the strategies that can wait for them, see Traits.Confirms.
	Replicas int
}

// ReplicateWithin is how long a grant waits for them; one that they do not have by then is
// given back. It is less than the read time-out of the Redis client, or no WAIT would be
// answered.
func (s Settings) ReplicateWithin() time.Duration {
	return max(min(s.LeaseTTL/10, s.Wait/10, time.Second), 10*time.Millisecond)
}

// DefaultSettings returns the settings that the shop runs with.
func DefaultSettings() Settings {
	return Settings{Wait: 5 * time.Second, LeaseTTL: 10 * time.Second, Poll: 2 * time.Millisecond}
}

// WithWait bounds a buy: the context that it returns ends with cause
// purchase.ErrBusy when Settings.Wait has passed since the call, wherever the buyer
// then stands: in front of a lock, a connection or a row. Only a COMMIT that was
// sent is waited for. start is the time of the call.
func (d Deps) WithWait(ctx context.Context) (_ context.Context, start time.Time, cancel context.CancelFunc) {
	ctx, cancel = context.WithTimeoutCause(ctx, d.Settings.Wait, purchase.ErrBusy)
	return ctx, d.Now(), cancel
}

// Sleep naps, or returns when ctx ends.
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

// RenewAfter calls renew after that time, and again so long after each Reset.
func (d Deps) RenewAfter(ctx context.Context, after time.Duration, renew func(context.Context)) rlock.Timer {
	if d.Renewal != nil {
		return d.Renewal(ctx, after, renew)
	}
	return time.AfterFunc(after, func() { renew(context.WithoutCancel(ctx)) })
}

// ReleaseTimeout bounds the release of a buyer that has hung up: its context has
// ended, but the lock must still be given back.
const ReleaseTimeout = 2 * time.Second

// Releasing returns a context for giving a lock back. It does not end with the
// buyer's, but after ReleaseTimeout.
func (d Deps) Releasing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	if d.Clock == nil {
		return context.WithTimeout(ctx, ReleaseTimeout)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := d.Clock.AfterFunc(ReleaseTimeout, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

// InsertAll records sales as purchase.InsertAll does, with their right ids also where the database
// is a cluster.
func (d Deps) InsertAll(ctx context.Context, tx *gorm.DB, keys []string, receipts []*purchase.Receipt) error {
	err := purchase.InsertAll(ctx, tx, keys, d.Now(), receipts)
	if err == nil && d.Certifies {
		err = purchase.ReadIDs(ctx, tx, keys, receipts)
	}
	return err
}

// NewKey returns an Idempotency-Key for an order that came without one.
func NewKey(strategy string) string { return strategy + "-" + strings.ToLower(rand.Text()) }

// Section is the naive section, recorded under a strategy's name.
func (d Deps) Section(strategy string) purchase.Section {
	return purchase.Section{DB: d.DB, Strategy: strategy, Now: d.Now}
}
