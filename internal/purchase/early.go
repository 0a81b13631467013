package purchase

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// holdPart is the part of the wait for which the refusal of a buyer who has come back too early
// is held up, at most.
const holdPart = 2

// told is when the client of a connection was told to come back. Its own goroutine and that
// of a request before may use it.
type told struct {
	mu        sync.Mutex
	purchaser string
	until     time.Time
}

type toldKey struct{}

// RememberReturns is http.Server.ConnContext: with it, a client who was refused by the
// Admission, comes back over the same connection before the time that it was told
// (Retry-After), and is refused again, hears so only at that time, or after half of the wait. Clients who ask again at once would have the processor write refusals, and nobody
// would be sold to: 5,000 of them left 3 sales a second of 1,000 (BenchmarkOverload).
//
// A proxy has requests of several buyers over one connection: only the buyer who was refused
// is held up, by the name that the request gives. Requests without a name are one buyer's.
func RememberReturns(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, toldKey{}, &told{})
}

// holdUp returns when a buyer who was refused with err may hear so; at once where it has not come
// too early, or hangs up.
func (k *Counter) holdUp(ctx context.Context, purchaser string, err error) {
	var full *Overloaded
	t, ok := ctx.Value(toldKey{}).(*told)
	if !ok || !errors.As(err, &full) {
		return
	}
	early := t.again(purchaser, time.Duration(full.seconds())*time.Second)
	if early <= 0 {
		return
	}
	// Not all at the same time: as one wave they would find the shop idle, then full.
	most := k.Wait / holdPart
	timer := time.NewTimer(min(early, most-rand.N(most/2)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
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
