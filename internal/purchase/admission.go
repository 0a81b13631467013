package purchase

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy/keyed"
)

// An Admission refuses buyers before a strategy is asked. It refuses a buyer that the shop could not
// serve within its wait, and one that would only make the other buyers wait longer. Without it, a
// shop serves fewer buyers the more arrive, and most of them are answered busy at the end of their
// wait.
//
//	request -> Admission -> Idempotent -> SoldOutCheck -> Strategy
//	               \- ErrBusy, and when to come back
//
// No buyer waits in the Admission: the queue is the strategy's own, which may serve buyers in
// groups. An arriving buyer is let in if fewer than crowd buyers are inside, and if they are served
// within half of the wait at the current pace.
//
// More than crowd buyers are let in only as a burst. A burst begins when only a few buyers were
// inside and no refused buyer was still expected back. It lasts a tenth of the wait, and all of it
// must be served within a fifth of the wait. A queue that empties is useful; a queue that stays only
// adds waiting time (the good and the bad queue of CoDel, RFC 8289, section 3). Until the pace is
// known, firstBurst limits a burst. While the pace is too slow, or no buyer is served, only a few
// buyers are let in, to notice when that ends.
//
// A refused buyer has not reached the strategy: nothing was read or written for it. Each product is
// counted separately under each strategy, so many buyers of one refuse none of another.
//
// An Admission is safe for concurrent use.
type Admission struct {
	wait time.Duration

	mu    sync.Mutex
	lines keyed.Map[lineKey, *line]
}

type lineKey struct{ strategy, product string }

// line is the state of one product under one strategy, while a buyer is inside or still expected
// back.
type line struct {
	inside  int
	pace    time.Duration // recent mean time between two served buyers, measured while a few are inside; 0: not known
	served  time.Time     // when the last buyer was served, or the first came in
	stands  time.Time     // since then more than a few are inside, or refused buyers are expected back
	returns time.Time     // when the last refused buyer is expected back
	kept    bool          // the line is kept until returns, also while no buyer is inside
}

// Limits of an Admission.
const (
	// few buyers are let in at any pace; otherwise the pace would stay unknown.
	few = 32
	// crowd is two groups of 128, for a strategy that serves in groups: one that is served and one
	// that gathers. With other strategies more buyers would not be served faster; they already
	// wait four times as long as 64 do.
	crowd = 256
	// 1/burst of the wait is how long more than crowd buyers are let in.
	burst = 10
	// 1/burstServed of the wait is the time in which all of a burst must be served. It is the
	// longest wait under overload.
	burstServed = 5
	// firstBurst is the largest burst before the pace is known. A shop that sells 1,000 per second
	// serves it in a fifth of a wait of 5 s, like any burst.
	firstBurst = 4 * crowd
	// longestRetryAfter limits Retry-After: by then the load may be different.
	longestRetryAfter = 30 * time.Second
)

// NewAdmission returns an Admission for buyers that wait at most for the time wait.
func NewAdmission(wait time.Duration) *Admission { return &Admission{wait: wait} }

// Overloaded is an ErrBusy that says that a buyer was refused before its strategy was asked.
type Overloaded struct {
	Inside     int           // buyers of the product that are inside
	RetryAfter time.Duration // when this buyer may be let in; above 0
}

func (e *Overloaded) Error() string {
	return fmt.Sprintf("the shop already serves %d buyers of this product and cannot serve more in time; come back in %d s", e.Inside, e.seconds())
}

func (e *Overloaded) Unwrap() error { return ErrBusy }

// seconds returns RetryAfter in whole seconds, as the header needs it (RFC 9110, 10.2.3).
func (e *Overloaded) seconds() int { return max(1, int(math.Ceil(e.RetryAfter.Seconds()))) }

// Before puts the admission before the strategy of that name.
func (a *Admission) Before(name string, s Strategy) Strategy { return &admitted{s, name, a} }

// admitted is a strategy behind an admission.
type admitted struct {
	Strategy
	name      string
	admission *Admission
}

// Buy implements Strategy. It returns an *Overloaded if the buyer is not let in.
func (s *admitted) Buy(ctx context.Context, o Order) (Receipt, error) {
	key := lineKey{s.name, o.Product}
	if err := s.admission.enter(key); err != nil {
		return Receipt{}, err
	}
	served := false
	defer func() { s.admission.leave(key, served) }()
	receipt, err := s.Strategy.Buy(ctx, o)
	served = OutcomeOf(err) != Busy && ctx.Err() == nil // except buyers that gave up or disconnected
	return receipt, err
}

// refuse asks the strategy: a buyer need not be let in to hear that the product is sold out.
func (s *admitted) refuse(ctx context.Context, o Order) error {
	if r, ok := s.Strategy.(refuser); ok {
		return r.refuse(ctx, o)
	}
	return nil
}

// enter lets a buyer in, or returns why not. After nil, leave must follow.
func (a *Admission) enter(key lineKey) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	l := a.lines.Use(key, func() *line { return &line{} })
	if l.inside == 0 {
		l.served = now
	}
	if l.inside < few && now.After(l.returns) {
		l.stands = now
	}
	if l.inside >= few && !a.inTime(l, now) {
		refused := &Overloaded{l.inside, l.comeBack(now)}
		if !l.kept {
			l.kept = true // counts as a user of the line in place of this buyer
			time.AfterFunc(l.returns.Sub(now), func() { a.forget(key, l) })
			return refused
		}
		a.lines.Release(key)
		return refused
	}
	l.inside++
	return nil
}

// forget drops the line that a refused buyer has kept, once the last refused buyer was expected
// back.
func (a *Admission) forget(key lineKey, l *line) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if left := time.Until(l.returns); left > 0 {
		time.AfterFunc(left, func() { a.forget(key, l) })
		return
	}
	l.kept = false
	a.lines.Release(key)
}

// inTime reports whether one more buyer would be served soon enough.
func (a *Admission) inTime(l *line, now time.Time) bool {
	if l.inside >= crowd && (now.Sub(l.stands) > a.wait/burst || l.delay(now) > a.wait/burstServed || l.pace == 0 && l.inside >= firstBurst) {
		return false
	}
	return l.delay(now) <= a.wait/2
}

// delay returns how long it takes until all buyers inside are served. If no buyer is being served,
// it is at least the time since the last one was.
func (l *line) delay(now time.Time) time.Duration {
	return max(time.Duration(l.inside)*l.pace, now.Sub(l.served))
}

// comeBack returns in how long a refused buyer may be let in: one buyer after another, at the
// current pace. If all came back at the same moment, most of them would be refused again.
func (l *line) comeBack(now time.Time) time.Duration {
	if first := now.Add(l.delay(now)); l.returns.Before(first) {
		l.returns = first
	}
	l.returns = l.returns.Add(max(l.pace, time.Microsecond))
	if last := now.Add(longestRetryAfter); l.returns.After(last) {
		l.returns = last
	}
	return l.returns.Sub(now)
}

func (a *Admission) leave(key lineKey, served bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, _ := a.lines.Get(key)
	l.inside--
	if served {
		now := time.Now()
		if l.inside >= few/2 { // with fewer, buyers arrive more slowly than they are served
			l.pace += (now.Sub(l.served) - l.pace) / few
		}
		l.served = now
	}
	a.lines.Release(key)
}
