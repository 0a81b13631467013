package rlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// nodeTimeout is how long one lock of a MultiLock may take in one attempt. Without it, two callers
// could each wait forever for a lock that the other holds.
const nodeTimeout = 1500 * time.Millisecond

// A MultiLock is several locks taken as one, usually of independent Redis servers: all of them, or
// none. It is safe for concurrent use.
type MultiLock struct{ locks []*Lock }

// Multi returns a lock that consists of the given locks.
//
// Source: Redisson, RedissonMultiLock.
func Multi(locks ...*Lock) *MultiLock { return &MultiLock{locks} }

// Lock takes the locks in their order. If one of them stays held for 1.5 s or its Redis does not answer, Lock
// gives back those that it has taken and starts again. It does so until ctx ends or the time of Wait is over.
// The errors are those of Lock.Lock. If a Redis is down, the error wraps ErrNotObtained and the error of that
// Redis.
func (m *MultiLock) Lock(ctx context.Context, options ...Option) (*MultiLease, error) {
	return m.obtain(ctx, forever, options)
}

// TryLock is like Lock, but makes only one attempt, unless Wait allows more time.
func (m *MultiLock) TryLock(ctx context.Context, options ...Option) (*MultiLease, error) {
	return m.obtain(ctx, 0, options)
}

func (m *MultiLock) obtain(ctx context.Context, wait time.Duration, options []Option) (*MultiLease, error) {
	if len(m.locks) == 0 {
		return nil, errors.New("rlock: a multi lock of no locks")
	}
	if _, explicit := holderOf(ctx); !explicit {
		ctx = WithHolder(ctx, NewHolder())
	}
	asked, err := m.locks[0].client.request(wait, options)
	if err != nil {
		return nil, fmt.Errorf("rlock: multi lock: %w", err)
	}
	clock := m.locks[0].client.clock
	var until time.Time
	if asked.wait > 0 {
		until = clock.Now().Add(asked.wait)
	}
	for {
		lease, err := m.round(ctx, asked, until, options)
		final := errors.Is(err, ErrBadName) || errors.Is(err, ErrBadSlots) || errors.Is(err, ErrBadTTL) || errors.Is(err, ErrClosed)
		switch {
		case err == nil:
			return lease, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("rlock: multi lock: %w", context.Cause(ctx))
		case final:
			return nil, fmt.Errorf("rlock: multi lock: %w", err)
		case asked.wait == 0, !until.IsZero() && !clock.Now().Before(until):
			return nil, fmt.Errorf("rlock: multi lock: %w", notObtained(err))
		}
		// The pause is random, since two callers that retried at the same time would make each other's
		// attempts fail.
		pause, over := clock.NewTimer(10*time.Millisecond + rand.N(40*time.Millisecond))
		select {
		case <-over:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

func notObtained(err error) error {
	if errors.Is(err, ErrNotObtained) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotObtained, err)
}

// round makes one attempt to take all locks. If the attempt fails, round keeps no lock.
func (m *MultiLock) round(ctx context.Context, asked request, until time.Time, options []Option) (*MultiLease, error) {
	leases := make([]*Lease, 0, len(m.locks))
	for _, lock := range m.locks {
		r, err := lock.client.request(asked.wait, options)
		if err == nil {
			r.wait, r.callTimeout = asked.wait, nodeTimeout
			if asked.wait != 0 {
				r.wait = nodeTimeout
				if !until.IsZero() {
					r.wait = max(min(r.wait, remaining(lock.client.clock, until)), time.Millisecond)
				}
				r.callTimeout = r.wait
			}
			var lease *Lease
			if lease, err = lock.obtainRequest(ctx, r); err == nil {
				leases = append(leases, lease)
				continue
			}
		}
		giveBack(ctx, leases)
		return nil, err
	}
	if !asked.autoRenewed && len(leases) > 1 {
		if err := refresh(ctx, leases, asked.ttl); err != nil {
			giveBack(ctx, leases)
			return nil, err
		}
	}
	return newMultiLease(ctx, leases), nil
}

// refresh gives all leases their full time again: the first lease has been running while the caller waited
// for the other locks.
func refresh(ctx context.Context, leases []*Lease, ttl time.Duration) error {
	for _, l := range leases {
		sent := l.lock.client.clock.Now()
		held, answered, err := runInterruptibly(ctx, func(ctx context.Context) (bool, error) {
			return l.hold.sendRenewal(ctx, ttl)
		}, nil)
		switch {
		case !answered:
			return noAnswer(ctx)
		case err != nil:
			return err
		case !held:
			return ErrLost
		}
		l.hold.mu.Lock()
		l.hold.extend(sent, ttl)
		l.hold.mu.Unlock()
	}
	return nil
}

// giveBack releases the leases. It waits at most nodeTimeout for a Redis. A lock that cannot be given back
// expires.
func giveBack(ctx context.Context, leases []*Lease) {
	if len(leases) == 0 {
		return
	}
	ctx, cancel := withTimeout(context.WithoutCancel(ctx), leases[0].lock.client.clock, nodeTimeout, context.DeadlineExceeded)
	defer cancel()
	for i := len(leases) - 1; i >= 0; i-- {
		_ = leases[i].Unlock(ctx)
	}
}

// A MultiLease has the leases of all locks of a MultiLock.
type MultiLease struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	leases []*Lease
}

func newMultiLease(ctx context.Context, leases []*Lease) *MultiLease {
	m := &MultiLease{leases: leases}
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	for _, l := range leases {
		context.AfterFunc(l.ctx, func() { m.cancel(context.Cause(l.ctx)) })
	}
	return m
}

// Context ends as soon as the context of any lease does, with the same cause.
func (m *MultiLease) Context() context.Context { return m.ctx }

// Leases returns the leases of the single locks, in the order of the locks.
func (m *MultiLease) Leases() []*Lease { return m.leases }

// Unlock gives all locks back, the last one first, and returns the joined errors of Lease.Unlock. If
// ErrNotHeld is among them, another holder may have been in the critical section.
func (m *MultiLease) Unlock(ctx context.Context) error {
	m.cancel(context.Canceled)
	var errs []error
	for i := len(m.leases) - 1; i >= 0; i-- {
		errs = append(errs, m.leases[i].Unlock(ctx))
	}
	return errors.Join(errs...)
}
