package rlock

import (
	"context"
	"fmt"
	"time"
)

// NewFairLock returns a reentrant lock that goes first come, first served
// among all processes. Redis keeps the queue; a waiter that is silent for
// FairWait past its turn counts as dead and is skipped. Deadlines are by the
// clock of Redis, where Redisson's are by the client's.
//
// A lock's name belongs to one kind of lock: what NewLock makes gets ahead of
// the queue, and calls nobody in it.
//
// Source: Redisson, RedissonFairLock.
func (c *Client) NewFairLock(name string) *Lock { return &Lock{c, fair, namesOf(name)} }

// patience is how long past its turn this waiter may be silent.
func (c *claim) patience() time.Duration {
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

// queue waits for a fair lock.
func (c *claim) queue(ctx context.Context) (*Lease, error) {
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
		timer, over := c.lock.client.clock.NewTimer(farewell)
		defer timer.Stop()
		select {
		case <-left:
		case <-over:
		}
	}
	return lease, err
}

// farewell is how long one that gives up waits to be out of the queue, so that
// a caller who tries over and over does not fill it.
const farewell = 100 * time.Millisecond

// await listens on the waiter's own channel.
func (c *claim) await(ctx context.Context, remaining time.Duration) (*Lease, error) {
	client := c.lock.client
	topic, _ := client.hub.join(c.lock.keys.waiter(c.slot.field))
	defer client.hub.leave(topic, 0)
	client.tell(Waiting, c.lock.keys.lock, c.slot.field)
	timer, due := client.clock.NewTimer(remaining)
	defer timer.Stop()
	for {
		select {
		case <-topic.signal: // called, or the subscription stands
		case <-due:
		case <-ctx.Done():
			if context.Cause(ctx) == errWaitOver {
				return nil, ErrNotObtained
			}
			return nil, context.Cause(ctx)
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

// quit leaves the queue, and calls the next one if the call came to this one.
// A holder that others use too may have got the lock meanwhile.
func (c *claim) quit() {
	ctx := context.WithoutCancel(c.ctx)
	c.slot.join()
	defer c.slot.leave()
	c.slot.begin(ctx)
	defer c.slot.end()
	next := fairLeave.run(ctx, c.lock.client.redis, c.lock.keys.fair(), c.slot.field, c.patience().Milliseconds())
	_ = next.Err() // else it is skipped after its patience
}

// sendFairRelease is sendReleaseOnce of a fair lock.
func (l *Lock) sendFairRelease(ctx context.Context, field string, left int) (bool, error) {
	reply, err := fairRelease.run(ctx, l.client.redis, l.keys.fair(), field, left).Slice()
	if err != nil {
		return false, err
	}
	if len(reply) != 2 {
		return false, fmt.Errorf("the fair release script returned %d values, not 2", len(reply))
	}
	if next, _ := reply[1].(string); next != "" {
		l.client.hub.hint(l.keys.waiter(next))
	}
	holds, _ := reply[0].(int64)
	return holds >= 0, nil
}
