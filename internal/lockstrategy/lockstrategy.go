// Package lockstrategy is the catalogue: every way to keep two buyers of the
// last unit apart, one short file each, the broken ones included as exhibits.
//
// All lists them. A strategy is a purchase.Strategy that gets all it needs by
// its constructor: connections, clock, waits, an observer. None keeps package
// state, so two instances in one process are as far apart as two processes.
//
// Most are a Locker around the naive section of internal/purchase:
//
//	Locked.Buy: waiting -> Locker.Lock -> acquired -> Section.Sell -> Release
//
// and the lock is released after the commit. The SQL strategies change the
// statements themselves.
package lockstrategy

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/zookeeper"
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
	// Wait is how long a buyer waits for its turn before it is told Busy.
	Wait time.Duration
	// LeaseTTL is how long a lock in Redis or etcd lives without its holder;
	// in ZooKeeper that is the time-out of the session in Deps. It must be far
	// above the time of one section (about 1 ms on one machine).
	LeaseTTL time.Duration
	// Poll is the mean time between two tries of the one waiter of this
	// process that polls a lock; each pause is drawn from [Poll/2, Poll*3/2).
	Poll time.Duration
}

// DefaultSettings returns the settings that the shop runs with.
func DefaultSettings() Settings {
	return Settings{Wait: 5 * time.Second, LeaseTTL: 10 * time.Second, Poll: 2 * time.Millisecond}
}

// An EventKind is what happened to a lock.
type EventKind string

// The events of one buy, in the order in which they can occur.
const (
	Waiting  EventKind = "waiting"
	Acquired EventKind = "acquired"
	Released EventKind = "released" // about to be given back: this buyer writes no more
	Lost     EventKind = "lost"     // found gone at the release
)

// An Event is one step of one buyer at one lock.
type Event struct {
	Kind      EventKind
	At        time.Time
	Strategy  string
	Product   string
	Purchaser string
	Token     string // what the lock knows its holder by; "" where it has none
}

// An Observer is told of each lock event while the buyer waits; it must be
// quick and may be called by many goroutines at once.
type Observer func(ctx context.Context, e Event)

// pause naps for d, or until ctx ends.
func (d Deps) pause(ctx context.Context, nap time.Duration) {
	if d.Pause != nil {
		d.Pause(ctx, nap)
		return
	}
	select {
	case <-time.After(nap):
	case <-ctx.Done():
	}
}

// renewal calls renew after d, and again d after each Reset.
func (d Deps) renewal(ctx context.Context, after time.Duration, renew func(context.Context)) rlock.Timer {
	if d.Renewal != nil {
		return d.Renewal(ctx, after, renew)
	}
	return time.AfterFunc(after, func() { renew(context.WithoutCancel(ctx)) })
}

// releasing returns a context for giving a lock back: it does not end with the
// buyer's, but after releaseTimeout.
func (d Deps) releasing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	if d.Clock == nil {
		return context.WithTimeout(ctx, releaseTimeout)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := d.Clock.AfterFunc(releaseTimeout, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

// section is the naive section, recorded under a strategy's name.
func (d Deps) section(strategy string) purchase.Section {
	return purchase.Section{DB: d.DB, Strategy: strategy, Now: d.Now}
}

// observe tells the observer, if there is one.
func (d Deps) observe(ctx context.Context, e Event) {
	if d.Observe == nil {
		return
	}
	e.At = d.Now()
	d.Observe(ctx, e)
}
