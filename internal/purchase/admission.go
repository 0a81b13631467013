package purchase

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy/keyed"
)

// An Admission refuses buyers who could not be served within their wait, and those who
// would only make the others wait longer, before a strategy is asked: a shop that lets
// everybody in serves fewer, the more come, and tells most of them busy when they have
// waited in vain.
//
//	request -> Admission -> Idempotent -> SoldOutCheck -> Strategy
//	            \- ErrBusy, and when to come back
//
// Nobody waits here: the line is the strategy's own, which may serve it in groups. Let in
// is who finds less than a crowd inside, and is served within half of the wait, by the pace at
// which those inside are. More than a crowd is let in as a burst, which is over a tenth of
// the wait after only a few were inside and no refused one was still to come back, and all of
// which is served within a fifth of it: a line that empties serves its purpose, one that stays
// only makes everybody wait (the good and the bad queue of CoDel, RFC 8289, section 3). Before
// the pace is known a burst is bounded.
// While the pace is too slow, or nobody is served at all, only a few are let in, to see when
// it ends.
//
// A refused buyer has not reached the strategy: nothing was read or written for it. Each
// product is counted by itself under each strategy, so a crowd at one refuses nobody at
// another.
//
// Its methods may be called by several goroutines.
type Admission struct {
	wait time.Duration

	mu    sync.Mutex
	lines keyed.Map[lineKey, *line]
}

type lineKey struct{ strategy, product string }

// line is one product under one strategy, while somebody is inside or still to come back.
type line struct {
	inside  int
	pace    time.Duration // from one who is served to the next, of late, while a few are inside; 0: not known
	served  time.Time     // the last one, or the first came in
	stands  time.Time     // since then more than a few are inside, or refused ones come back
	returns time.Time     // when the last of those who were refused is to come back
	kept    bool          // until then, also while nobody is inside
}

// Bounds of an Admission.
const (
	// few are let in whatever the pace, or nothing would be known of it.
	few = 32
	// crowd is two groups of 128 for a strategy that serves in groups: one that is served and
	// one that comes together. Of others nobody gets ahead faster by more of them; they wait
	// longer, four times as long as 64 do.
	crowd = 256
	// burst is the part of the wait for which more than a crowd is let in.
	burst = 10
	// burstServed is the part of the wait within which all of a burst must be served: it is the
	// longest that anybody waits under overload.
	burstServed = 5
	// firstBurst is the largest one before the pace is known: a shop that sells 1,000 a second
	// serves it in a fifth of a wait of 5 s, as any burst.
	firstBurst = 4 * crowd
	// longestRetryAfter: by then all may be different.
	longestRetryAfter = 30 * time.Second
)

// NewAdmission is for buyers who wait so long, at most.
func NewAdmission(wait time.Duration) *Admission { return &Admission{wait: wait} }

// Overloaded says that a buyer was refused before its strategy was asked. It is ErrBusy.
type Overloaded struct {
	Inside     int           // buyers of the product who were let in before
	RetryAfter time.Duration // when this one may be; above 0
}

func (e *Overloaded) Error() string {
	return fmt.Sprintf("%d buyers of it are being served, as many as can be in time; come back in %d s", e.Inside, e.seconds())
}

func (e *Overloaded) Unwrap() error { return ErrBusy }

// seconds is RetryAfter as the header has it: whole ones (RFC 9110, 10.2.3).
func (e *Overloaded) seconds() int { return max(1, int(math.Ceil(e.RetryAfter.Seconds()))) }

// Before puts the admission before the strategy of that name.
func (a *Admission) Before(name string, s Strategy) Strategy { return &admitted{s, name, a} }

// admitted is a strategy behind an admission.
type admitted struct {
	Strategy
	name      string
	admission *Admission
}

// Buy is Strategy.Buy; *Overloaded where the buyer is not let in.
func (s *admitted) Buy(ctx context.Context, o Order) (Receipt, error) {
	key := lineKey{s.name, o.Product}
	if err := s.admission.enter(key); err != nil {
		return Receipt{}, err
	}
	served := false
	defer func() { s.admission.leave(key, served) }()
	receipt, err := s.Strategy.Buy(ctx, o)
	served = OutcomeOf(err) != Busy && ctx.Err() == nil // not who gave up or hung up
	return receipt, err
}

// refuse asks the strategy: who is sold out need not be let in to hear so.
func (s *admitted) refuse(ctx context.Context, o Order) error {
	if r, ok := s.Strategy.(refuser); ok {
		return r.refuse(ctx, o)
	}
	return nil
}

// enter lets a buyer in, or says why not. After nil leave must follow.
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
			l.kept = true // as its user, instead of this buyer
			time.AfterFunc(l.returns.Sub(now), func() { a.forget(key, l) })
			return refused
		}
		a.lines.Release(key)
		return refused
	}
	l.inside++
	return nil
}

// forget ends what a refused buyer has kept of the line, when the last one was to come back.
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

// inTime: one more is served soon enough.
func (a *Admission) inTime(l *line, now time.Time) bool {
	if l.inside >= crowd && (now.Sub(l.stands) > a.wait/burst || l.delay(now) > a.wait/burstServed || l.pace == 0 && l.inside >= firstBurst) {
		return false
	}
	return l.delay(now) <= a.wait/2
}

// delay is how long it takes until all who are inside are served; where nobody is, at least as
// long as that has lasted.
func (l *line) delay(now time.Time) time.Duration {
	return max(time.Duration(l.inside)*l.pace, now.Sub(l.served))
}

// comeBack is in how long a refused buyer may be let in: one after the other, as fast as they are
// served. All at the same moment would only be refused again.
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
		if l.inside >= few/2 { // below, buyers come more slowly than they are served
			l.pace += (now.Sub(l.served) - l.pace) / few
		}
		l.served = now
	}
	a.lines.Release(key)
}
