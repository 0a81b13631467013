package rlock

import (
	"context"
	"fmt"
)

// A Lease is the right to the lock until Unlock, or until it is lost. Its
// methods may be called by several goroutines.
//
// It is lost, and Context ends with cause ErrLost, when
//   - a renewal finds that the holder's field is gone: ForceUnlock, a DEL, a
//     Redis that restarted empty or failed over to a replica without it;
//   - it expires: LeaseTime is over, or no renewal was answered in time. The clock of this process decides
//     that. The lease counts from the moment at which the last answered command was sent. It ends 1 % and 2 ms
//     early, so that the context ends before another holder can get the lock;
//   - Unlock finds it gone.
//
// Without a watchdog, only the clock and Unlock can detect the loss. A paused process cannot detect it before
// it runs again. With a fenced lock (NewFencedLock), the target of its late writes can refuse them.
type Lease struct {
	lock         *Lock
	hold         *hold
	ctx          context.Context
	cancel       context.CancelCauseFunc
	token        int64
	autoRenewed  bool        // the watchdog renews the lease; guarded by hold.mu
	stopRenewing func() bool // cancels the hook on the end of ctx
}

// Context is a child of the context given to Lock. It ends with cause ErrLost when the lease is lost, with
// context.Canceled when it is unlocked, and with ErrClosed at Client.Close. A Lock of the same name with this
// context or a child of it is reentrant, since the context contains the lease's holder.
func (l *Lease) Context() context.Context { return l.ctx }

// Token returns the fencing token of a lease of a fenced lock: greater than that of any earlier
// grant. It returns 0 for other locks.
func (l *Lease) Token() int64 { return l.token }

// Holder returns the holder's name in Redis: the field "uuid:id" of the hash.
func (l *Lease) Holder() string { return l.hold.slot.field }

// HoldCount returns the number of the holder's leases of this Client that are neither unlocked nor known to
// be lost. It does not ask Redis, as Lock.HoldCount does.
func (l *Lease) HoldCount() int { return l.hold.held() }

// Unlock ends the lease. If it is the holder's last one, Unlock frees the lock. Before that, the context of
// the lease ends and its watchdog stops, so no renewal can follow.
//
// The error is ErrNotHeld if the lease was already unlocked or lost. Unlock then changes nothing, even if
// another lease has the lock. If ctx ends first, the error wraps ErrNoAnswer and the cause. The lock is then
// given back as soon as Redis answers, or it expires. After other errors of Redis, Unlock may be called again.
func (l *Lease) Unlock(ctx context.Context) error {
	_, answered, err := runInterruptibly(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.unlock(ctx)
	}, nil)
	switch {
	case !answered:
		return fmt.Errorf("rlock: unlock %q: %w: %w", l.lock.keys.lock, ErrNoAnswer, err)
	case err != nil:
		return fmt.Errorf("rlock: unlock %q: %w", l.lock.keys.lock, err)
	}
	return nil
}

func (l *Lease) unlock(ctx context.Context) error {
	h := l.hold
	s := h.slot
	s.begin(context.WithoutCancel(ctx))
	defer s.end()
	left, held := h.retire(l)
	if !held || s.current != h {
		return ErrNotHeld
	}
	released, err := l.lock.release(ctx, s.field, left)
	if err != nil {
		return err
	}
	if !released {
		h.end(ErrLost)
	}
	h.forget(l)
	if left == 0 {
		s.hold(nil)
	}
	if !released {
		return ErrNotHeld
	}
	if left == 0 {
		h.client.drop(h)
		h.client.report(Released, l.lock.keys.lock, s.field)
	}
	return nil
}

// release ends one of the holder's leases in Redis. It returns false if there is none. After the last lease,
// it hands the lock to the next waiter of this process, or frees it for all processes.
func (l *redisLock) release(ctx context.Context, field string, left int) (bool, error) {
	if left == 0 && l.kind != fair {
		if line, successor := l.client.chooseSuccessor(l.keys.lock, field); successor != nil {
			return l.handOver(ctx, field, line, successor)
		}
	}
	return l.sendRelease(ctx, field, left)
}

// sendRelease sends the release and repeats it if it may not have arrived. If the answer to the repetition is
// "not held", the first command may have released the lock.
func (l *redisLock) sendRelease(ctx context.Context, field string, left int) (bool, error) {
	released, err := l.sendReleaseOnce(ctx, field, left)
	if !maybeDone(err) {
		return released, err
	}
	if again, secondErr := l.sendReleaseOnce(ctx, field, left); secondErr == nil && again {
		return true, nil
	}
	return false, err
}

func (l *redisLock) sendReleaseOnce(ctx context.Context, field string, left int) (bool, error) {
	if l.kind == fair {
		return l.sendFairRelease(ctx, field, left)
	}
	reply, err := release.run(ctx, l.client.redis, []string{l.keys.lock, l.keys.channel}, field, left).Int64Slice()
	if err != nil {
		return false, err
	}
	if len(reply) != 2 {
		return false, fmt.Errorf("the release script returned %d numbers, not 2", len(reply))
	}
	l.client.offered(l.keys.lock, int(reply[1]))
	return reply[0] >= 0, nil
}
