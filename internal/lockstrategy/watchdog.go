// watchdog: redis, renewed by its holder every third of the TTL.
//
// Guarantees:  one buyer of a product at a time, however long the section, while
//              its holder can renew; when a renewal finds the lease gone, or
//              cannot be made before it must have run out, the section's context
//              ends and its transaction is rolled back.
// Breaks when: the holder is paused for longer than the TTL, watchdog and all,
//              and goes on with its commit; or Redis forgets.
// Cost:        as redis, and a goroutine a holder.
// Source:      Redisson documentation, "Lock", lockWatchdogTimeout; the lock is
//              github.com/bsm/redislock and its Refresh.

package lockstrategy

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
)

// NewWatchdog needs the database and one Redis.
func NewWatchdog(d Deps) *Locked {
	return newLocked(d, "watchdog", &watchdogLocker{newRedisLocker(d, "watchdog"), d.Settings.LeaseTTL})
}

type watchdogLocker struct {
	*redisLocker
	ttl time.Duration
}

func (w *watchdogLocker) Lock(ctx context.Context, product string) (Lease, error) {
	lease, err := w.redisLocker.Lock(ctx, product)
	if err != nil {
		return nil, err
	}
	l := &watchdogLease{redisLease: lease.(*redisLease), ttl: w.ttl, stop: make(chan struct{}), stopped: make(chan struct{}), lost: make(chan struct{})}
	go l.renew(l.asked)
	return l, nil
}

type watchdogLease struct {
	*redisLease
	ttl     time.Duration
	stop    chan struct{} // closed by Release
	stopped chan struct{} // closed when no renewal can follow
	lost    chan struct{} // closed when the lease is known to be lost
}

// renew asks for another TTL every third of it. held is when the last
// grant was asked for: the lease ends no earlier than one TTL from then.
func (l *watchdogLease) renew(held time.Time) {
	defer close(l.stopped)
	ticker := time.NewTicker(l.ttl / 3)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
		}
		asked := time.Now()
		ctx, cancel := context.WithDeadline(context.Background(), held.Add(l.ttl))
		err := l.lock.Refresh(ctx, l.ttl, nil)
		cancel()
		switch {
		case err == nil:
			held = asked
		case errors.Is(err, redislock.ErrNotObtained), time.Since(held) >= l.ttl*2/3:
			close(l.lost) // gone, or the next try would come too late
			return
		}
	}
}

func (l *watchdogLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return untilLost(ctx, l.lost)
}

// Release ends the renewal before it frees the key, and waits for one under
// way: a watchdog that outlives its lock keeps out everybody.
func (l *watchdogLease) Release(ctx context.Context) error {
	close(l.stop)
	<-l.stopped
	return l.redisLease.Release(ctx)
}
