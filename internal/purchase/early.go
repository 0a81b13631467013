package purchase

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// holdPart is the part of the wait for which the refusal of a buyer who has come back too early
// is held up, at most.
const holdPart = 2

// told is when the client of a connection was told to come back. Its own goroutine and that
// of a request before may use it.
type told struct {
	spare func() (wanted <-chan struct{}, done func())

	mu        sync.Mutex
	purchaser string
	until     time.Time
}

type toldKey struct{}

// RememberReturns is http.Server.ConnContext: with it, a client who was refused by the
// Admission, comes back over the same connection before the time that it was told
// (Retry-After), and is refused again, hears so only at that time, or after half of the wait.
// Clients who ask again at once would have the processor write refusals, and nobody
// would be sold to: 5,000 of them left 3 sales a second of 1,000 (BenchmarkOverload).
//
// A proxy has requests of several buyers over one connection: only the buyer who was refused
// is held up, by the name that the request gives. Requests without a name are one buyer's,
// unless a proxy says that it has forwarded them: those are never held up, or strangers would
// hold each other up. A proxy that shares connections must say so, by Forwarded,
// X-Forwarded-For or Via.
//
// Who is held up must not keep others out: spare is told of its connection. When wanted is
// closed, the client hears at once that it is refused, and the connection ends. Once done
// has returned, wanted is not closed any more.
func RememberReturns(spare func(net.Conn) (wanted <-chan struct{}, done func())) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, toldKey{}, &told{spare: func() (<-chan struct{}, func()) { return spare(conn) }})
	}
}

// shared says that a request may be over a connection of several clients, and does not say
// whose it is.
func shared(purchaser string, h http.Header) bool {
	return purchaser == "" && (h.Get("Forwarded") != "" || h.Get("X-Forwarded-For") != "" || h.Get("Via") != "")
}

// holdUp returns when a buyer who was refused with err may hear so; at once where it has not come
// too early, or hangs up. last: its connection is wanted for somebody else.
func (k *Counter) holdUp(ctx context.Context, purchaser string, err error) (last bool) {
	var full *Overloaded
	t, ok := ctx.Value(toldKey{}).(*told)
	if !ok || !errors.As(err, &full) {
		return false
	}
	early := t.again(purchaser, time.Duration(full.seconds())*time.Second)
	if early <= 0 {
		return false
	}
	wanted, done := t.spare()
	// Not all at the same time: as one wave they would find the shop idle, then full.
	most := k.Wait / holdPart
	timer := time.NewTimer(min(early, most-rand.N(most/2)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-wanted:
	}
	done()
	select {
	case <-wanted:
		return true
	default:
		return false
	}
}

// again is how much too early the purchaser is, who is told to come back after so long now.
func (t *told) again(purchaser string, after time.Duration) (early time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.purchaser == purchaser {
		early = t.until.Sub(now)
	}
	t.purchaser, t.until = purchaser, now.Add(after)
	return early
}
