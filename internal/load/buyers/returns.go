package buyers

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/oversell/oversell/internal/purchase"
)

// Limits for a refused buyer that asks again.
const (
	leastAway = 100 * time.Millisecond // minimum time until it asks again; with 0 the buyer would loop without a pause
	mostAway  = 5 * time.Minute        // maximum time from its first request to its last one
)

// retryAfter returns how long a buyer must stay away, from the header Retry-After (RFC 9110, 10.2.3), which
// contains seconds or a date. A date comes from the server's clock, so retryAfter compares it with the header
// Date, or with `now` if there is none. `ok` is false without a valid Retry-After.
func retryAfter(h http.Header, now time.Time) (after time.Duration, ok bool) {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return max(leastAway, time.Duration(seconds)*time.Second), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(leastAway, at.Sub(now)), true
}

// ask sends one buyer and returns its last answer. A buyer that is refused with Retry-After asks again later,
// with three exceptions. It stops after a wait of half of Patience in the shop, or when the context `going`
// has ended. It also stops if the shop has served no buyer for as long as Timeout.
func (c *call) ask(ctx, going context.Context, base string, b Buyer) Answer {
	a := c.visit(ctx, base, b)
	first, returns := a.Start, 0
	for c.Patience > 0 && b.HangUp == 0 && a.Outcome == purchase.Busy && a.mayReturn && a.End.Sub(a.Start) < c.Patience/2 {
		back := a.End.Add(a.returnsAfter)
		lastServed := time.Unix(0, c.served.Load())
		isLate := back.After(first.Add(c.Timeout)) && back.After(lastServed.Add(c.Timeout)) || back.After(first.Add(mostAway))
		if isLate || !sleep(going, time.Until(back)) {
			a.IsDeferred = true
			break
		}
		a = c.visit(ctx, base, b)
		returns++
	}
	a.First, a.Returns = first, returns
	if c.Answered != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.Answered(a)
	}
	return a
}

// sleep waits for d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
