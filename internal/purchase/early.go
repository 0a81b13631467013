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

// holdPart is the maximum part of the wait for which the refusal of a buyer that came back too
// early is delayed.
const holdPart = 2

// told records when the client of a connection may come back. The connection's own goroutine and
// that of an earlier request may use it.
type told struct {
	spare func() (wanted <-chan struct{}, done func())

	mu        sync.Mutex
	purchaser string
	until     time.Time
}

type toldKey struct{}

// RememberReturns is http.Server.ConnContext. It delays the second refusal of a client that the
// Admission has refused and that comes back over the same connection before its Retry-After. Such a
// client hears the refusal only at the time that it was told, or after half of the wait. Otherwise
// the processor would only write refusals: 5,000 clients that asked again at once left 3 sales per
// second of 1,000 (loadtest/overload.sh).
//
// A proxy sends requests of several buyers over one connection. Only the refused buyer is delayed,
// recognized by the name in its request. Requests without a name count as one buyer's. If a proxy
// has forwarded them, they are never delayed, since they may belong to different buyers. A proxy
// that shares connections must say so with Forwarded, X-Forwarded-For or Via.
//
// A delayed buyer must not block other clients, so spare receives its connection. When wanted is
// closed, the client hears at once that it is refused, and the connection ends. wanted must not be
// closed after done has returned.
func RememberReturns(spare func(net.Conn) (wanted <-chan struct{}, done func())) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, toldKey{}, &told{spare: func() (<-chan struct{}, func()) { return spare(conn) }})
	}
}

// shared reports whether a request may come over a connection of several clients and does not name
// its own.
func shared(purchaser string, h http.Header) bool {
	return purchaser == "" && (h.Get("Forwarded") != "" || h.Get("X-Forwarded-For") != "" || h.Get("Via") != "")
}

// holdUp delays the refusal err until the buyer may hear it. It returns at once if the buyer has
// not come too early, or disconnects. last reports that another client needs the connection.
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
	// Do not release all delayed buyers at the same time: together they would find the shop idle,
	// then full.
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

// again returns how much too early the purchaser is, and notes that it is now told to come back
// after a given time.
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
