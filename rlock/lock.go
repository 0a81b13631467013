package rlock

import (
	"context"
	"fmt"
	"time"
)

type kind int

const (
	plain kind = iota
	fenced
	fair
)

// A Lock is a name on which holders in any number of processes exclude each other. A Lock value has no state,
// so a program may make any number of them.
type Lock struct{ redisLock }

// redisLock has the keys of a lock in Redis, and the commands on them.
type redisLock struct {
	client *Client
	kind   kind
	keys   keys
}

// NewLock returns a reentrant lock. Waiters of one Client are served in order of arrival; there is no order
// between Clients. A name has 1 to 512 bytes of any value; Lock and TryLock refuse any other.
//
// Source: Redisson, RedissonLock.
func (c *Client) NewLock(name string) *Lock { return &Lock{redisLock{c, plain, namesOf(name)}} }

// Lock waits for the lock until ctx ends, or until the time of the option Wait is over. It can be interrupted
// at any time, even while Redis hangs. By default a watchdog renews the lease until it is unlocked; with the
// option LeaseTime there is no watchdog.
//
// The lease belongs to ctx: its context is a child of ctx, and its watchdog stops when ctx ends. So if the
// critical section may take longer than the wait, limit the wait with Wait and not with a deadline of ctx.
//
// Errors: ErrNotObtained when Wait is over; context.Cause(ctx) when ctx ended; ErrNoAnswer; ErrBadName;
// ErrBadSlots; ErrBadTTL; ErrClosed; errors of Redis, wrapped. After each of them the caller holds nothing.
func (l *Lock) Lock(ctx context.Context, options ...Option) (*Lease, error) {
	return l.obtain(ctx, forever, options)
}

// TryLock does the same as Lock, but does not wait unless the option Wait asks for it. It may overtake
// waiters. If Redis is slow to answer, ctx or the ReadTimeout of the go-redis client limits the call.
func (l *Lock) TryLock(ctx context.Context, options ...Option) (*Lease, error) {
	return l.obtain(ctx, 0, options)
}

func (l *Lock) obtain(ctx context.Context, wait time.Duration, options []Option) (*Lease, error) {
	r, err := l.client.request(wait, options)
	if err != nil {
		return nil, fmt.Errorf("rlock: lock %q: %w", l.keys.lock, err)
	}
	return l.obtainRequest(ctx, r)
}

func (l *Lock) obtainRequest(ctx context.Context, r request) (*Lease, error) {
	lease, err := l.waitForLease(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("rlock: lock %q: %w", l.keys.lock, err)
	}
	l.client.report(Acquired, l.keys.lock, lease.hold.slot.field)
	return lease, nil
}

func (l *Lock) waitForLease(ctx context.Context, r request) (*Lease, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	switch {
	case l.client.isClosed():
		return nil, ErrClosed
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	holder, explicit := holderOf(ctx)
	if !explicit {
		holder = NewHolder()
		ctx = WithHolder(ctx, holder)
	}
	s := holder.enter(l.client, l.keys.lock)
	defer s.leave()
	c := &claim{lock: l, slot: s, ctx: ctx, shared: explicit, request: r}

	waitCtx := ctx
	if r.callTimeout > 0 {
		var cancel context.CancelFunc
		waitCtx, cancel = withTimeout(ctx, l.client.clock, r.callTimeout, errWaitOver)
		defer cancel()
	}
	if l.kind == fair {
		return c.waitFair(waitCtx)
	}
	return c.waitUnordered(waitCtx)
}
