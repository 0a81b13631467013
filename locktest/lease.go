package locktest

import (
	"context"
	"fmt"
	"time"
)

// renewal lets a holder keep the lock for three TTLs while another client asks for it. The holder must have
// the lock all the time. The check reads the remaining time from the server every twentieth of a TTL. Each
// rise is a renewal, and the rises must add up to two TTLs. If Subject.Remaining is nil, the check waits for
// the three TTLs instead.
func renewal(ctx context.Context, tr *trial) Result {
	if tr.s.TTL <= 0 {
		return unchecked("the leases have no TTL")
	}
	lease, err := tr.clients[0].Lock(ctx, tr.name)
	if err != nil {
		return breaks("lock: %v", err)
	}
	begin := time.Now()
	asking, stop := context.WithCancel(ctx)
	taken := make(chan Lease, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if l := ask(asking, tr.clients[1], tr.name); l != nil {
			taken <- l
		}
	}()
	r := watch(ctx, tr, lease, begin, taken)
	stop()
	<-done
	if r.Verdict == Holds {
		if err := lease.Unlock(ctx); err != nil {
			return breaks("unlock after three TTLs: %v", err)
		}
	}
	select {
	case l := <-taken:
		_ = l.Unlock(ctx)
	default:
	}
	if r.Verdict == Holds {
		return tr.ifAble(ctx, tr.clients[1], r)
	}
	return r
}

// watch reads the remaining time of the lease until it was renewed for two TTLs.
func watch(ctx context.Context, tr *trial, lease Lease, begin time.Time, taken chan Lease) Result {
	var (
		ttl         = tr.s.TTL
		last, risen time.Duration
		renewals    int
	)
	ticker := time.NewTicker(max(ttl/20, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return breaks("renewed for %s only, %d times, in %s", round(risen), renewals, round(time.Since(begin)))
		case l := <-taken:
			taken <- l
			return breaks("another client had the lock after %s, and the holder had not unlocked; TTL %s", round(time.Since(begin)), ttl)
		case <-lost(lease):
			return breaks("the holder was told after %s that the lock is lost, and no client took it", round(time.Since(begin)))
		case <-ticker.C:
		}
		if tr.s.Remaining == nil {
			if time.Since(begin) > 3*ttl {
				return holds("another client asked for three TTLs of %s and never got the lock", ttl)
			}
			continue
		}
		left, err := tr.s.Remaining(ctx, tr.name)
		if err != nil {
			return breaks("remaining: %v", err)
		}
		if left <= 0 {
			return breaks("the lease ran out after %s, and the holder had not unlocked; TTL %s", round(time.Since(begin)), ttl)
		}
		if last > 0 && left > last {
			risen += left - last
			renewals++
		}
		last = left
		if risen >= 2*ttl {
			return holds("%d renewals in %s kept the lease of %s", renewals, round(time.Since(begin)), ttl)
		}
	}
}

// lossSignal makes the server lose the lock. The lease must signal the loss to its holder.
func lossSignal(ctx context.Context, tr *trial) Result {
	if tr.s.Forget == nil {
		return unchecked("no hook Forget")
	}
	lease, r := tr.holder(ctx)
	if lease == nil {
		return r
	}
	begin := time.Now()
	if err := tr.s.Forget(ctx, tr.name); err != nil {
		return breaks("forget: %v", err)
	}
	return tr.signalled(ctx, lease, begin, tr.s.lossBound(), "the server forgot the lock")
}

// frozenServer stops the server, so the lease cannot be renewed. One TTL later another client may have the
// lock, so the lease must signal the loss to its holder.
func frozenServer(ctx context.Context, tr *trial) Result {
	switch {
	case tr.s.Freeze == nil:
		return unchecked("no hook Freeze")
	case tr.s.TTL <= 0:
		return unchecked("the leases have no TTL")
	}
	lease, r := tr.holder(ctx)
	if lease == nil {
		return r
	}
	thaw, err := tr.s.Freeze(ctx)
	if err != nil {
		return breaks("freeze: %v", err)
	}
	r = tr.signalled(ctx, lease, time.Now(), tr.s.TTL, "the server froze")
	if err := thaw(); err != nil {
		return breaks("thaw: %v", err)
	}
	_ = lease.Unlock(ctx) // returns an error if the lock is lost
	begin := time.Now()
	next, err := tr.clients[1].Lock(ctx, tr.name)
	if err != nil {
		return breaks("no client could take the lock after the thaw: %v", err)
	}
	_ = next.Unlock(ctx)
	r.Why += fmt.Sprintf("; another client had it %s after the thaw", round(time.Since(begin)))
	return r
}

// holder takes the lock with the first client. If the lease cannot signal a loss, holder returns nil, and a
// result with the reason.
func (tr *trial) holder(ctx context.Context) (Lease, Result) {
	lease, err := tr.clients[0].Lock(ctx, tr.name)
	if err != nil {
		return nil, breaks("lock: %v", err)
	}
	signal := lost(lease)
	if signal == nil {
		_ = lease.Unlock(ctx)
		return nil, breaks("the lease has neither Lost nor Context")
	}
	select {
	case <-signal:
		return nil, breaks("a fresh lease is told to be lost")
	default:
	}
	return lease, Result{}
}

// signalled waits for the signal of a loss and judges how long after the time `begin` it came.
func (tr *trial) signalled(ctx context.Context, lease Lease, begin time.Time, bound time.Duration, event string) Result {
	giveUp := time.After(3*bound + 4*grace)
	select {
	case <-lost(lease):
		took := time.Since(begin)
		switch {
		case took > bound+grace+tr.late():
			return breaks("%s, and the holder was told after %s, bound %s", event, round(took), bound)
		case took > bound+grace:
			return inconclusive("%s, and the holder was told after %s, bound %s, on a machine that stood still for %s",
				event, round(took), bound, round(tr.longest()))
		}
		r := holds("%s, and the holder was told after %s, bound %s", event, round(took), bound)
		r.Figures = map[string]float64{"told_after": took.Seconds()}
		return r
	case <-giveUp:
	case <-ctx.Done():
	}
	return breaks("%s, and the holder was not told within %s", event, round(time.Since(begin)))
}
