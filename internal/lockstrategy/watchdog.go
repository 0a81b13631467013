package lockstrategy

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"

	"github.com/oversell/oversell/internal/lockstrategy/lease"
	"github.com/oversell/oversell/internal/lockstrategy/rediskey"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

// watchdog takes the lock of the strategy `redis` and renews it while its holder runs.
//
//   - Summary: the lock of `redis`, renewed every TTL/3
//   - Guarantees: Mutual exclusion per product while the holder can renew, however long its critical
//     section is. If a renewal finds the lease lost, or if none succeeds before the lease expires, the
//     section's context ends and its transaction is rolled back.
//   - Breaks when: a pause outlasts the TTL; Redis loses the key
//   - How it breaks: The holder, its watchdog included, pauses for longer than the TTL and then commits. Or
//     Redis loses the key.
//   - Cost: It costs the same as `redis`, and one goroutine per holder.
//   - Source: Redisson documentation, "Lock", lockWatchdogTimeout; the lock is github.com/bsm/redislock and its
//     Refresh
type watchdog struct {
	rediskey.Lock
	deps Deps
}

// NewWatchdog returns the strategy. It needs the database and a Redis.
func NewWatchdog(d Deps) *Locked {
	return rediskey.NewLocked(d, "watchdog", watchdog{newRedisLock(d), d})
}

func (w watchdog) Take(ctx context.Context, key, token string) (lease.Lease, error) {
	asked := time.Now()
	held, err := w.Lock.Take(ctx, key, token)
	if err != nil || held == nil {
		return nil, err
	}
	ttl := w.deps.Settings.LeaseTTL
	l := &watchdogLease{redisLease: held.(redisLease), ttl: ttl, stop: make(chan struct{}), stopped: make(chan struct{}), lost: make(chan struct{})}
	due := make(chan context.Context, 1)
	timer := w.deps.RenewAfter(ctx, ttl/3, func(ctx context.Context) { due <- ctx })
	go l.renew(asked, due, timer)
	return l, nil
}

type watchdogLease struct {
	redisLease
	ttl     time.Duration
	stop    chan struct{} // closed by Release
	stopped chan struct{} // closed when no renewal can follow
	lost    chan struct{} // closed when the lease is known to be lost
}

// renew extends the lease every third of the TTL. The parameter `held` is the time when the buyer asked for the
// lock. The lease lasts for at least one TTL from the time when the holder sent its last successful request.
// The holder gives the lease up a tenth of the TTL before that, by its own timer. So a Redis that hangs does
// not keep the critical section running.
func (l *watchdogLease) renew(held time.Time, due <-chan context.Context, timer rlock.Timer) {
	defer close(l.stopped)
	defer timer.Stop()
	end := time.NewTimer(time.Until(held.Add(l.ttl * 9 / 10)))
	defer end.Stop()
	answers := make(chan refreshed, 1)
	for {
		select {
		case <-l.stop:
			return
		case <-end.C:
			close(l.lost)
			return
		case ctx := <-due:
			asked := time.Now()
			go func() { answers <- refreshed{asked, l.lock.Refresh(ctx, l.ttl, nil)} }()
		case a := <-answers:
			timer.Reset(max(0, l.ttl/3-time.Since(a.asked))) // never two renewals at once
			switch {
			case a.err == nil:
				end.Reset(time.Until(a.asked.Add(l.ttl * 9 / 10)))
			case errors.Is(a.err, redislock.ErrNotObtained):
				close(l.lost) // another holder has the key, or the key is gone
				return
			} // otherwise Redis did not answer: the next try or the timer decides
		}
	}
}

// refreshed is the answer to a renewal, and the time when the renewal was sent.
type refreshed struct {
	asked time.Time
	err   error
}

func (l *watchdogLease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return lease.UntilLost(ctx, l.lost)
}

// Release ends the renewal before it frees the key: a watchdog that outlived its lock would exclude
// all other buyers. A renewal in flight may arrive after the release. Its script compares the token
// first and finds no key.
func (l *watchdogLease) Release(ctx context.Context) error {
	close(l.stop)
	<-l.stopped
	return l.redisLease.Release(ctx)
}

func watchdogEntry() Entry {
	return Entry{
		Name: "watchdog", Family: redisLocks,
		Needs:   []Need{NeedsRedis},
		Scripts: redisEntry().Scripts,
		New:     func(d Deps) purchase.Strategy { return NewWatchdog(d) },
		Traits: Traits{
			Confirms: true,
			Leased:   true,
			WaitsFor: WaitLock,
			Lock:     LockPromise{Renewed: true},
			CaughtBy: map[string]string{"ExpiredLease": wantTwoHolders},
		},
	}.holdsExcept(renewedLeaseBreaks())
}
