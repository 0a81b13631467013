package rlock

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
)

// A claim is one call of Lock or TryLock that waits for its lease.
type claim struct {
	lock   *Lock
	slot   *slot
	ctx    context.Context // the caller's context, to which the Holder was added; parent of the lease's context
	shared bool            // the caller supplied the Holder, which other goroutines may be using
	denied bool            // Redis has refused the lock in this call
	request
}

// try asks Redis once. If another holder has the lock, the lease is nil, and the duration is the
// maximum time until the next attempt.
func (c *claim) try(ctx context.Context) (*Lease, time.Duration, error) {
	s := c.slot
	if !s.begin(ctx) {
		return nil, 0, c.ended(ctx)
	}
	have := 0
	if s.current != nil {
		have = s.current.held()
	}
	sent := c.lock.client.clock.Now()
	a, answered, err := runInterruptibly(ctx,
		func(ctx context.Context) (answer, error) { return c.lock.acquire(ctx, c, have+1) },
		func(a answer, err error) { // runs if the answer comes after the caller has stopped waiting
			defer s.end()
			if a.holds > 0 || maybeDone(err) {
				c.undo(have)
			}
		})
	switch {
	case !answered:
		return nil, 0, c.ended(ctx)
	case maybeDone(err):
		go func() {
			defer s.end()
			c.undo(have)
		}()
		return nil, 0, err
	}
	defer s.end()
	c.denied = c.denied || err == nil && a.holds == 0
	if err != nil || a.holds == 0 {
		return nil, a.remaining, err
	}
	return c.granted(sent, a.holds, a.token)
}

// ended returns the error for a caller whose wait ended during a request to Redis.
func (c *claim) ended(ctx context.Context) error {
	if c.denied {
		return waitEnded(ctx)
	}
	return noAnswer(ctx)
}

// granted makes the lease after Redis has granted the lock. Call it between slot.begin and slot.end.
func (c *claim) granted(sent time.Time, holds, token int64) (*Lease, time.Duration, error) {
	s := c.slot
	h := s.current
	if h == nil || h.held() == 0 || holds == 1 {
		if h != nil {
			h.end(ErrLost) // the earlier leases had expired, and this holder took the lock again
		}
		h = newHold(c.ctx, c.lock.client, s)
		if !c.lock.client.keep(h) {
			go c.undo(0)
			return nil, 0, ErrClosed
		}
		s.hold(h)
	}
	return h.admit(c, sent, token), 0, nil
}

// undo releases a lock that may have been granted after the caller gave up. If Redis did not grant the
// lock, nothing changes. If Redis cannot be reached, the lock expires by itself. Call undo between
// slot.begin and slot.end.
func (c *claim) undo(have int) {
	_, _ = c.lock.sendRelease(context.WithoutCancel(c.ctx), c.slot.field, have)
}

type answer struct {
	holds     int64 // 0: another holder has the lock
	token     int64
	remaining time.Duration // time until the lock expires
}

// acquire asks Redis once for the lock. If too few replicas have stored the grant in time, acquire gives it
// back and answers that another holder has the lock.
func (l *redisLock) acquire(ctx context.Context, c *claim, holds int) (a answer, err error) {
	replicas := l.client.replicas
	if replicas == 0 {
		return l.sendAcquire(ctx, l.client.redis, c, holds)
	}
	var have int64
	err = topology.OnConn(ctx, l.client.redis, l.keys.lock, func(conn *redis.Conn) error {
		if a, err = l.sendAcquire(ctx, conn, c, holds); err != nil || a.holds == 0 {
			return err
		}
		have, err = topology.Wait(ctx, conn, replicas, l.client.replicateWithin)
		return err
	})
	if a.holds > 0 && (err != nil || have < int64(replicas)) {
		_, _ = l.sendRelease(ctx, c.slot.field, int(a.holds)-1) // if it fails, the lock expires
		a = answer{remaining: l.client.replicateWithin}
	}
	return a, err
}

func (l *redisLock) sendAcquire(ctx context.Context, rdb processor, c *claim, holds int) (answer, error) {
	ms := c.ttl.Milliseconds()
	var reply []int64
	var err error
	if l.kind == fair {
		reply, err = fairAcquire.run(ctx, rdb, l.keys.fair(), ms, c.slot.field, holds, c.waitTimeout().Milliseconds(), c.enqueue()).Int64Slice()
	} else {
		reply, err = acquire.run(ctx, rdb, l.tokenKeys(l.keys.lock), ms, c.slot.field, holds).Int64Slice()
	}
	if err != nil {
		return answer{}, err
	}
	if len(reply) != 2 {
		return answer{}, fmt.Errorf("the acquire script returned %d numbers, not 2", len(reply))
	}
	if reply[0] == 0 {
		return answer{remaining: l.pollAfter(reply[1])}, nil
	}
	return answer{holds: reply[0], token: reply[1]}, nil
}

// maxPoll is the longest wait in ms that fits into a time.Duration.
const maxPoll = int64(math.MaxInt64/time.Millisecond) - 1

// pollAfter converts the answer of PTTL, in ms, to a wait. If another program has made a lock without a TTL,
// or with a TTL of centuries, pollAfter returns the WatchdogTimeout.
func (l *redisLock) pollAfter(pttl int64) time.Duration {
	if pttl < 0 || pttl > maxPoll {
		return l.client.watchdog
	}
	// Redis reports a TTL of 0.9 ms as 0.
	return time.Duration(pttl+1) * time.Millisecond
}

// runInterruptibly runs f in a new goroutine and waits for it until ctx ends. If ctx ends first, f continues,
// its results go to the function `late`, and `answered` is false. This is needed since go-redis ignores the
// cancellation of a context, and also its deadline unless Options.ContextTimeoutEnabled is set.
func runInterruptibly[T any](ctx context.Context, f func(context.Context) (T, error), late func(T, error)) (result T, answered bool, err error) {
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome)
	gone := make(chan struct{})
	go func() {
		result, err := f(context.WithoutCancel(ctx))
		select {
		case done <- outcome{result, err}:
		case <-gone:
			if late != nil {
				late(result, err)
			}
		}
	}()
	select {
	case o := <-done:
		return o.result, true, o.err
	case <-ctx.Done():
		close(gone)
		return result, false, context.Cause(ctx)
	}
}
