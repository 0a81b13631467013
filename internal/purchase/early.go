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

// A refusal is delayed by at most 1/holdPart of Counter.Wait, the time limit of a buy.
const holdPart = 2

// told holds the time at which the client of one connection may come back. The connection's
// goroutine and that of an earlier request may use it at the same time.
type told struct {
	spare func() (wanted <-chan struct{}, done func())

	mu        sync.Mutex
	purchaser string
	until     time.Time
}

type toldKey struct{}

// RememberReturns returns a function for http.Server.ConnContext. A refused client may ask again over the same
// connection before its Retry-After. The shop then delays the next refusal until that time, by at most half of
// Counter.Wait. Without the delay, the shop would do nothing but write refusals: 5,000 clients that retried at
// once cut 1,000 sales per second to 3 (loadtest/overload.sh).
//
// A proxy may send requests of several buyers over one connection, so the shop delays only requests with the
// refused buyer's name. All requests without a name count as one buyer's. They are never delayed if a proxy has
// forwarded them. So a proxy that shares connections must send the header Forwarded, X-Forwarded-For or Via.
//
// RememberReturns calls `spare` with the connection of a delayed client, so that the server can replace the
// connection by one of another client. When the server closes the channel `wanted`, the client gets its
// refusal at once and the connection ends. The server must not close `wanted` after `done` has returned.
func RememberReturns(spare func(net.Conn) (wanted <-chan struct{}, done func())) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, toldKey{}, &told{spare: func() (<-chan struct{}, func()) { return spare(conn) }})
	}
}

// shared reports whether a proxy forwarded a request without a purchaser's name. The next request
// over the connection may then be another buyer's.
func shared(purchaser string, h http.Header) bool {
	return purchaser == "" && (h.Get("Forwarded") != "" || h.Get("X-Forwarded-For") != "" || h.Get("Via") != "")
}

// holdUp delays the refusal err of a buyer that came back too early. It returns early if the buyer disconnects.
// The result `last` reports whether the connection must end, since another client needs its place.
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
	// Spread the delays at random: buyers that come back together find the shop idle and then fill it.
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

// again returns how much too early the purchaser came back. It stores that the purchaser may come back after
// the given duration from now on.
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
