package rlock

import (
	"context"
	"fmt"
	"time"
)

// NewFairLock returns a reentrant lock that serves the waiters of all processes in order of arrival. Redis
// keeps the queue. If it is a waiter's turn and it stays silent for FairWait, it counts as dead and is
// skipped. The clock of Redis measures this time; in Redisson, the client's clock does.
//
// Use a name for one kind of lock only: a lock from NewLock with the same name jumps the queue, and its
// release does not notify the waiters in the queue.
//
// Source: Redisson, RedissonFairLock.
func (c *Client) NewFairLock(name string) *Lock { return &Lock{redisLock{c, fair, namesOf(name)}} }

// waitTimeout returns how long this waiter may be silent when it is its turn, before the others count it as
// dead.
func (c *claim) waitTimeout() time.Duration {
	if c.wait > 0 {
		return c.wait
	}
	return c.lock.client.fairWait
}

func (c *claim) enqueue() int {
	if c.wait == 0 {
		return 0
	}
	return 1
}

func (c *claim) waitFair(ctx context.Context) (*Lease, error) {
	lease, remaining, err := c.try(ctx)
	if c.wait == 0 {
		if lease == nil && err == nil {
			err = ErrNotObtained
		}
		return lease, err
	}
	if lease == nil && err == nil {
		lease, err = c.await(ctx, remaining)
	}
	if lease == nil {
		left := make(chan struct{})
		go func() {
			defer close(left)
			c.quit()
		}()
		timer, over := c.lock.client.clock.NewTimer(dequeueTimeout)
		defer timer.Stop()
		select {
		case <-left:
		case <-over:
		}
	}
	return lease, err
}

// dequeueTimeout is how long a waiter that gives up waits at most until Redis has removed it from the queue.
// Without this wait, a caller that tries again and again could fill the queue.
const dequeueTimeout = 100 * time.Millisecond

// await listens on the waiter's own channel until it is the waiter's turn, and then asks for the lock again.
func (c *claim) await(ctx context.Context, remaining time.Duration) (*Lease, error) {
	client := c.lock.client
	topic, _ := client.subscriber.join(c.lock.keys.waiter(c.slot.field))
	defer client.subscriber.leave(topic, 0)
	client.report(Waiting, c.lock.keys.lock, c.slot.field)
	timer, due := client.clock.NewTimer(remaining)
	defer timer.Stop()
	for {
		select {
		case <-topic.signal: // notified, or the subscription is confirmed
		case <-due:
		case <-ctx.Done():
			return nil, waitEnded(ctx)
		case <-client.closed:
			return nil, ErrClosed
		}
		lease, remaining, err := c.try(ctx)
		if lease != nil || err != nil {
			return lease, err
		}
		timer.Reset(remaining)
	}
}

// quit leaves the queue in Redis. If this waiter had been notified, quit notifies the next one. Its holder
// may own the lock by then, since other goroutines can acquire the lock with the same Holder.
func (c *claim) quit() {
	ctx := context.WithoutCancel(c.ctx)
	c.slot.join()
	defer c.slot.leave()
	c.slot.begin(ctx)
	defer c.slot.end()
	next := fairLeave.run(ctx, c.lock.client.redis, c.lock.keys.fair(), c.slot.field, c.waitTimeout().Milliseconds())
	_ = next.Err() // if this failed, the next waiter is skipped after its wait timeout
}

// sendFairRelease sends one release of a fair lock. For other locks, sendReleaseOnce does so.
func (l *redisLock) sendFairRelease(ctx context.Context, field string, left int) (bool, error) {
	reply, err := fairRelease.run(ctx, l.client.redis, l.keys.fair(), field, left).Slice()
	if err != nil {
		return false, err
	}
	if len(reply) != 2 {
		return false, fmt.Errorf("the fair release script returned %d values, not 2", len(reply))
	}
	if next, _ := reply[1].(string); next != "" {
		l.client.subscriber.notify(l.keys.waiter(next))
	}
	holds, _ := reply[0].(int64)
	return holds >= 0, nil
}
