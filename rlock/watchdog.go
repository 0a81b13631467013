package rlock

import (
	"context"
	"sync"
	"time"
)

// A hold is the time for which one Holder has one lock, from the first grant to the last Unlock. It has a
// lease for each grant, one deadline and one watchdog.
type hold struct {
	client *Client
	slot   *slot
	ctx    context.Context // the context of the first grant; only its values are used

	mu            sync.Mutex
	leases        map[*Lease]struct{} // leases that are not unlocked yet
	renewedLeases int                 // leases that the watchdog renews
	until         time.Time           // the holder has the lock at least until then
	deadline      Timer               // fires at the time until
	renewal       Timer
	renewing      chan struct{} // closed when the current renewal is done; nil if none is in progress
	stopped       bool          // no renewal may start, and the deadline has no effect
	lost          bool
	cause         error // why the hold ended; nil while it lasts
}

func newHold(ctx context.Context, c *Client, s *slot) *hold {
	return &hold{client: c, slot: s, ctx: context.WithoutCancel(ctx), leases: map[*Lease]struct{}{}}
}

// held returns the number of leases that are not unlocked, or 0 if they are lost.
func (h *hold) held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return 0
	}
	return len(h.leases)
}

// admit makes a lease from a grant. The parameter `sent` is the time at which the command was sent.
func (h *hold) admit(c *claim, sent time.Time, token int64) *Lease {
	l := &Lease{lock: c.lock, hold: h, token: token, autoRenewed: c.autoRenewed}
	l.ctx, l.cancel = context.WithCancelCause(c.ctx)
	h.mu.Lock()
	h.leases[l] = struct{}{}
	if l.autoRenewed {
		h.renewedLeases++
	}
	h.extend(sent, c.ttl)
	if h.renewedLeases == 1 && l.autoRenewed {
		h.renewIn(h.client.renewal())
	}
	cause := h.cause
	h.mu.Unlock()
	if cause != nil { // Close came first
		l.cancel(cause)
	}
	if l.autoRenewed {
		l.stopRenewing = context.AfterFunc(l.ctx, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.stopRenewing(l)
		})
	}
	return l
}

// margin returns how much earlier a lease ends here than its TTL in Redis. Redis expires keys by its own
// clock, and the clocks of two machines drift apart.
func margin(ttl time.Duration) time.Duration {
	return min(ttl/100+2*time.Millisecond, ttl/2)
}

// extend moves the end of the lease. It counts from the time at which the command was sent: Redis
// started the TTL then or later. The caller holds h.mu.
func (h *hold) extend(sent time.Time, ttl time.Duration) {
	until := sent.Add(ttl - margin(ttl))
	if h.stopped || !until.After(h.until) {
		return
	}
	h.until = until
	if h.deadline == nil {
		h.deadline = h.client.clock.AfterFunc(remaining(h.client.clock, until), h.expire)
	} else {
		h.deadline.Reset(remaining(h.client.clock, until))
	}
}

// expire runs when the deadline fires, even if Redis hangs.
func (h *hold) expire() {
	h.mu.Lock()
	if h.stopped {
		h.mu.Unlock()
		return
	}
	if left := remaining(h.client.clock, h.until); left > 0 { // a renewal has extended the lease while the deadline fired
		h.deadline.Reset(left)
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	h.end(ErrLost)
}

// renewIn starts the watchdog's timer. The caller holds h.mu.
func (h *hold) renewIn(d time.Duration) {
	if h.stopped || h.renewedLeases == 0 {
		return
	}
	if h.renewal == nil {
		h.renewal = h.client.renewalTimer(h.ctx, d, h.renew)
	} else {
		h.renewal.Reset(d)
	}
}

// renew asks Redis for another TTL and schedules the next renewal. A command that hangs blocks only
// this goroutine.
func (h *hold) renew(ctx context.Context) {
	h.mu.Lock()
	if h.stopped || h.renewedLeases == 0 || h.renewing != nil {
		h.mu.Unlock()
		return
	}
	done := make(chan struct{})
	h.renewing = done
	h.mu.Unlock()

	ttl, sent := h.client.watchdog, h.client.clock.Now()
	held, err := h.sendRenewal(ctx, ttl)

	h.mu.Lock()
	h.renewing = nil
	close(done)
	renewed := !h.stopped && err == nil && held
	gone := !h.stopped && err == nil && !held
	switch {
	case renewed:
		h.extend(sent, ttl)
		h.renewIn(h.client.renewal())
	case err != nil:
		h.renewIn(ttl / 10) // try again soon; the deadline ends the attempts
	}
	h.mu.Unlock()
	switch {
	case renewed:
		h.client.report(Renewed, h.slot.key.name, h.slot.field)
	case gone:
		h.end(ErrLost)
	}
}

func (h *hold) sendRenewal(ctx context.Context, ttl time.Duration) (bool, error) {
	n, err := renew.run(ctx, h.client.redis, []string{h.slot.key.name}, ttl.Milliseconds(), h.slot.field).Int64()
	return n == 1, err
}

// stopRenewing stops the watchdog if the lease l, which ends, was the last one to renew. The caller holds h.mu.
func (h *hold) stopRenewing(l *Lease) {
	if !l.autoRenewed {
		return
	}
	l.autoRenewed = false
	h.renewedLeases--
	if h.renewedLeases == 0 && h.renewal != nil {
		h.renewal.Stop()
	}
}

// stop prevents further renewals. The caller holds h.mu.
func (h *hold) stop() {
	h.stopped = true
	if h.deadline != nil {
		h.deadline.Stop()
	}
	if h.renewal != nil {
		h.renewal.Stop()
	}
}

// retire ends the context of l, and returns how many leases remain. If none remain, the watchdog has stopped
// and no renewal is in progress when retire returns. The result `held` is false if l does not belong to the
// hold, or no longer does.
func (h *hold) retire(l *Lease) (left int, held bool) {
	h.mu.Lock()
	if _, held = h.leases[l]; !held {
		h.mu.Unlock()
		return 0, false
	}
	left = len(h.leases) - 1
	h.stopRenewing(l)
	var underWay chan struct{}
	if left == 0 {
		h.stop()
		underWay = h.renewing
	}
	h.mu.Unlock()
	if l.stopRenewing != nil {
		l.stopRenewing()
	}
	l.cancel(context.Canceled)
	if underWay != nil {
		<-underWay
	}
	return left, true
}

func (h *hold) forget(l *Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.leases, l)
}

// end ends the contexts of all leases. Only the first call counts.
func (h *hold) end(cause error) {
	h.mu.Lock()
	if h.cause != nil {
		h.mu.Unlock()
		return
	}
	h.cause, h.lost = cause, cause == ErrLost
	h.stop()
	leases := make([]*Lease, 0, len(h.leases))
	for l := range h.leases {
		leases = append(leases, l)
	}
	h.mu.Unlock()
	h.client.drop(h)
	for _, l := range leases {
		l.cancel(cause)
	}
	if h.lost {
		h.client.report(Lost, h.slot.key.name, h.slot.field)
	}
}
