package explore

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/rlock"
)

// A timer is that of a watchdog. It fires when the schedule says so: as an
// event, or since time passes.
type timer struct {
	buyer int
	renew func()
	armed atomic.Bool
}

// Reset is rlock.Timer.Reset; how long does not matter.
func (t *timer) Reset(time.Duration) bool { return t.armed.Swap(true) }

// Stop is rlock.Timer.Stop.
func (t *timer) Stop() bool { return t.armed.Swap(false) }

// renewal is lockstrategy.Deps.Renewal of one buyer; 0: of all.
func (x *Explorer) renewal(id int) func(context.Context, time.Duration, func(context.Context)) rlock.Timer {
	return func(ctx context.Context, _ time.Duration, renew func(context.Context)) rlock.Timer {
		t := &timer{buyer: buyerOf(ctx, id), renew: func() { renew(aside(context.WithoutCancel(ctx))) }}
		t.armed.Store(true)
		if r := x.gates.current.Load(); r != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.timers = append(r.timers, t)
		}
		return t
	}
}

// due are the buyer's timers that run. Those of a crashed buyer never fire.
func (r *run) due(b *buyer) (due []*timer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.timers {
		if t.buyer == b.id && t.armed.Load() && !b.crashed {
			due = append(due, t)
		}
	}
	return due
}

// ring lets timers fire. What they send stands at the gate then, beside what
// the buyer itself sends: from now on the gates alone do not tell who is still
// on its way.
func (r *run) ring(due []*timer) {
	r.concurrent = true
	for _, t := range due {
		if t.armed.Swap(false) {
			go r.renew(t)
		}
	}
}

// renew runs in a goroutine of its own. Its name marks it, see quiet.go.
func (r *run) renew(t *timer) { t.renew() }

// A phase is how far time has passed since somebody could move.
type phase int

const (
	renewals phase = iota // next, the watchdogs of those who live renew
	expiry                // then what none of them has renewed runs out
	over                  // nothing is left to come but the waiters' own timers
)

// passTime lets time pass, when nobody can move. It returns what to tell of it,
// and false when nothing came of it: who still waits then waits for ever.
//
// A lease with a watchdog whose process lives does not run out: all leases
// age by a third of a TTL, which is when watchdogs renew, and what has not been
// put back when nobody can move again runs out.
func (r *run) passTime(ctx context.Context) (told string, passed bool, err error) {
	if r.phase == renewals {
		r.phase = expiry
		var due []*timer
		for _, b := range r.buyers {
			due = append(due, r.due(b)...)
		}
		if len(due) > 0 {
			r.renewed = true
			if err := r.x.age(ctx); err != nil {
				return "", false, err
			}
			r.ring(due)
			return "time passes: every watchdog that lives is due", true, nil
		}
	}
	if r.phase == expiry {
		r.phase = over
		keys, err := r.expire(ctx, r.renewed)
		r.renewed = false
		if len(keys) > 0 || err != nil {
			r.phase = renewals
			return "time passes until the leases run out: " + strings.Join(keys, ", "), len(keys) > 0, err
		}
	}
	if !r.woken {
		r.woken = true // once: who still finds nothing then waits for ever
		keys, err := r.wakeAll(ctx)
		return "time passes until the leases run out: " + strings.Join(keys, ", "), len(keys) > 0, err
	}
	return "", false, nil
}

// age lets a third of a TTL pass.
func (x *Explorer) age(ctx context.Context) error {
	leases, err := x.leases(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		if l.clock {
			continue // its holder's clock says, and nobody renews it
		}
		if err := l.server.admin.PExpire(ctx, l.key, max(time.Millisecond, l.left-forever/3)).Err(); err != nil {
			return err
		}
	}
	return nil
}
