package purchase

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy/keyed"
)

// An Admission refuses a buyer before its strategy runs. It does so if the shop could not serve the buyer
// within its wait (the time limit of a buy), or if the buyer would only make others wait longer. Without an
// Admission, a shop serves fewer buyers the more arrive, and answers most of them "busy" only after their full
// wait.
//
//	request -> Admission -> Idempotent -> SoldOutCheck -> Strategy
//	               \- ErrBusy, and when to come back
//
// No buyer waits in the Admission. Buyers wait in the strategy's own queue, which may serve them in groups. A
// buyer that was let in is "inside" until it is answered. The Admission lets a buyer in if fewer than 256
// (`crowd`) are inside, and if the current pace serves them all within half of the wait.
//
// More buyers may enter only during a burst. A burst begins when only a few buyers are inside and no refused
// buyer is still expected back. It lasts a tenth of the wait. The shop must be able to serve all its buyers
// within a fifth of the wait. Until the pace is known, a burst has at most 1,024 buyers (`firstBurst`). A
// queue that empties is useful, but a queue that stays only adds waiting time (the good and the bad queue of
// CoDel, RFC 8289, section 3). While the pace is too slow, or no buyer is served, only 32 buyers (`few`)
// enter, so that the shop notices an improvement.
//
// For a refused buyer, the shop reads and writes nothing. The Admission counts each product and
// strategy separately, so a burst on one product refuses no buyer of another.
//
// An Admission is safe for concurrent use.
type Admission struct {
	wait time.Duration

	mu    sync.Mutex
	loads keyed.Map[loadKey, *load]
}

type loadKey struct{ strategy, product string }

// load counts the buyers of one product and strategy. It exists while a buyer is inside or a
// refused buyer is still expected back.
type load struct {
	inside    int
	pace      time.Duration // recent mean time between two served buyers, measured while at least few/2 buyers are inside; 0: unknown
	served    time.Time     // when the last buyer was served, or the first came in
	busySince time.Time     // since when at least `few` buyers are inside, or refused buyers are expected back
	returns   time.Time     // when the last refused buyer is expected back
	kept      bool          // the load stays in the map until the last refused buyer is expected back
}

// Limits of an Admission.
const (
	// few is the number of buyers that may enter however slow the pace is. Without them, the shop could not
	// measure the pace.
	few = 32
	// crowd is the limit outside a burst: two groups of 128, one being served and one gathering. A
	// strategy without groups would not get faster with more buyers.
	crowd = 256
	// A burst lasts 1/burst of the wait.
	burst = 10
	// All buyers of a burst must be served within 1/burstServed of the wait. That is the longest
	// wait under overload.
	burstServed = 5
	// firstBurst is the largest burst before the pace is known. A shop that sells 1,000 units per
	// second serves it in 1 s, a fifth of a wait of 5 s.
	firstBurst = 4 * crowd
	// longestRetryAfter limits Retry-After: after a longer time, the load may have changed.
	longestRetryAfter = 30 * time.Second
)

// NewAdmission returns an Admission. The parameter `wait` is how long a buyer waits at most.
func NewAdmission(wait time.Duration) *Admission { return &Admission{wait: wait} }

// Overloaded is the error for a buyer that an Admission has refused. It wraps ErrBusy.
type Overloaded struct {
	Inside     int           // buyers of the product that are inside
	RetryAfter time.Duration // how long this buyer should wait before it asks again; above 0
}

func (e *Overloaded) Error() string {
	return fmt.Sprintf("the shop already serves %d buyers of this product and cannot serve more in time; come back in %d s", e.Inside, e.seconds())
}

func (e *Overloaded) Unwrap() error { return ErrBusy }

// seconds returns RetryAfter in whole seconds for the Retry-After header (RFC 9110, 10.2.3).
func (e *Overloaded) seconds() int { return max(1, int(math.Ceil(e.RetryAfter.Seconds()))) }

// Before returns a Strategy that asks the Admission before it calls s, the strategy of that name.
func (a *Admission) Before(name string, s Strategy) Strategy { return &admitted{s, name, a} }

type admitted struct {
	Strategy
	name      string
	admission *Admission
}

// Buy implements Strategy. It returns an *Overloaded if the buyer is not let in.
func (s *admitted) Buy(ctx context.Context, o Order) (Receipt, error) {
	key := loadKey{s.name, o.Product}
	if err := s.admission.enter(key); err != nil {
		return Receipt{}, err
	}
	served := false
	defer func() { s.admission.leave(key, served) }()
	receipt, err := s.Strategy.Buy(ctx, o)
	served = OutcomeOf(err) != Busy && ctx.Err() == nil // false for a buyer that gave up or disconnected
	return receipt, err
}

// refuse asks the strategy whether the product is sold out. A buyer gets that answer even if the Admission
// would not let it in.
func (s *admitted) refuse(ctx context.Context, o Order) error {
	if r, ok := s.Strategy.(refuser); ok {
		return r.refuse(ctx, o)
	}
	return nil
}

// enter lets a buyer in, or returns an *Overloaded. After nil, the caller must call leave.
func (a *Admission) enter(key loadKey) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	l := a.loads.Use(key, func() *load { return &load{} })
	if l.inside == 0 {
		l.served = now
	}
	if l.inside < few && now.After(l.returns) {
		l.busySince = now
	}
	if l.inside >= few && !a.inTime(l, now) {
		refused := &Overloaded{l.inside, l.comeBack(now)}
		if !l.kept {
			l.kept = true
			time.AfterFunc(l.returns.Sub(now), func() { a.forget(key, l) })
			return refused
		}
		a.loads.Release(key)
		return refused
	}
	l.inside++
	return nil
}

// forget removes a load that was kept for refused buyers, once the last of them is expected back.
func (a *Admission) forget(key loadKey, l *load) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if left := time.Until(l.returns); left > 0 {
		time.AfterFunc(left, func() { a.forget(key, l) })
		return
	}
	l.kept = false
	a.loads.Release(key)
}

// inTime reports whether one more buyer would be served in time by the limits of an Admission.
func (a *Admission) inTime(l *load, now time.Time) bool {
	if l.inside >= crowd && (now.Sub(l.busySince) > a.wait/burst || l.delay(now) > a.wait/burstServed || l.pace == 0 && l.inside >= firstBurst) {
		return false
	}
	return l.delay(now) <= a.wait/2
}

// delay estimates the time until all buyers inside are served. It is at least the time since the
// last buyer was served, so it grows while the shop serves none.
func (l *load) delay(now time.Time) time.Duration {
	return max(time.Duration(l.inside)*l.pace, now.Sub(l.served))
}

// comeBack returns the time after which a refused buyer should come back. It spreads the refused
// buyers at the current pace; if all came back at once, most would be refused again.
func (l *load) comeBack(now time.Time) time.Duration {
	if first := now.Add(l.delay(now)); l.returns.Before(first) {
		l.returns = first
	}
	l.returns = l.returns.Add(max(l.pace, time.Microsecond))
	if last := now.Add(longestRetryAfter); l.returns.After(last) {
		l.returns = last
	}
	return l.returns.Sub(now)
}

func (a *Admission) leave(key loadKey, served bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, _ := a.loads.Get(key)
	l.inside--
	if served {
		now := time.Now()
		if l.inside >= few/2 { // with fewer, the time between two buyers shows how fast they arrive, not how fast the shop serves
			l.pace += (now.Sub(l.served) - l.pace) / few
		}
		l.served = now
	}
	a.loads.Release(key)
}
