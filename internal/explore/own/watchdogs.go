package own

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/rlock"
)

type watchdogs struct {
	mu     sync.Mutex
	timers []*timer
}

// A timer belongs to a watchdog, which renews a buyer's lease. The schedule decides when the timer fires: as an event,
// or when time passes.
type timer struct {
	buyer int
	renew func()
	armed atomic.Bool
}

// Reset implements rlock.Timer. It ignores the duration, since the schedule decides when the timer fires.
func (t *timer) Reset(time.Duration) bool { return t.armed.Swap(true) }

// Stop implements rlock.Timer.
func (t *timer) Stop() bool { return t.armed.Swap(false) }

// renewal implements lockstrategy.Deps.Renewal for one buyer; id 0 stands for all buyers.
func (x *Runner) renewal(id int) func(context.Context, time.Duration, func(context.Context)) rlock.Timer {
	return func(ctx context.Context, _ time.Duration, renew func(context.Context)) rlock.Timer {
		t := &timer{buyer: gate.BuyerOf(ctx, id), renew: func() { renew(gate.Background(context.WithoutCancel(ctx))) }}
		t.armed.Store(true)
		if r := x.current.Load(); r != nil {
			r.dogs.add(t)
		}
		return t
	}
}

func (w *watchdogs) add(t *timer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timers = append(w.timers, t)
}

// armed returns the running timers of the buyer. The timers of a crashed buyer never fire.
func (w *watchdogs) armed(b *buyer) (armed []*timer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.timers {
		if t.buyer == b.id && t.armed.Load() && !b.crashed {
			armed = append(armed, t)
		}
	}
	return armed
}

// fire lets timers fire. Their commands then wait at the gate together with the buyer's own command. From then on, a
// buyer may have several unanswered commands.
func (r *run) fire(timers []*timer) {
	r.rest.severalAtOnce = true
	for _, t := range timers {
		if t.armed.Swap(false) {
			r.knows.memories[t.buyer-1].hear("a watchdog is due")
			go r.dogs.renew(t)
		}
	}
}

// renew runs in a goroutine of its own. Package standstill finds this goroutine by the name of this method.
func (*watchdogs) renew(t *timer) { t.renew() }
