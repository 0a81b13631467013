package rlock

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// A Client makes the locks of one Redis: a server, a Sentinel group or a cluster. It is safe for concurrent
// use, and so are its locks. One Client per process is enough; its waiters share one subscription connection.
type Client struct {
	redis     redis.UniversalClient
	id        string
	watchdog  time.Duration
	fairWait  time.Duration
	handOvers int

	replicas        int // how many replicas must have a grant
	replicateWithin time.Duration

	observe func(Event)

	clock        Clock
	renewEvery   *time.Duration // nil: a third of watchdog
	renewalTimer func(ctx context.Context, d time.Duration, renew func(context.Context)) Timer

	subscriber *subscriber
	closed     chan struct{}

	mu    sync.Mutex
	lines map[string]*line // queues by the lock's name; a queue exists while a goroutine waits
	holds map[*hold]struct{}
}

// New returns a Client that uses rdb. The caller owns rdb: it must be open while locks are held,
// and Close does not close it.
func New(rdb redis.UniversalClient, options ...ClientOption) *Client {
	c := &Client{
		redis: rdb, id: uuid.NewString(), watchdog: 30 * time.Second, fairWait: 5 * time.Minute, handOvers: 16,
		clock: systemClock{}, closed: make(chan struct{}),
		lines: map[string]*line{}, holds: map[*hold]struct{}{},
	}
	for _, option := range options {
		option(c)
	}
	if c.renewalTimer == nil {
		c.renewalTimer = func(ctx context.Context, d time.Duration, renew func(context.Context)) Timer {
			return c.clock.AfterFunc(d, func() { renew(ctx) })
		}
	}
	if c.replicas > 0 {
		c.handOvers = 0 // a handover between waiters of this process would not wait for replicas
	}
	c.subscriber = newSubscriber(rdb, c.clock)
	return c
}

// Close stops every watchdog and the subscription. Waiters and new calls return ErrClosed, and the contexts
// of leases end with that cause. Close does not free held locks: a critical section may still run. Unlock
// works as before, and a lock that is not unlocked expires. The error is always nil.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.isClosed() {
		c.mu.Unlock()
		return nil
	}
	close(c.closed)
	held := make([]*hold, 0, len(c.holds))
	for h := range c.holds {
		held = append(held, h)
	}
	c.mu.Unlock()
	for _, h := range held {
		h.end(ErrClosed)
	}
	c.subscriber.close()
	return nil
}

// renewal returns how long the watchdog waits before it renews a lease.
func (c *Client) renewal() time.Duration {
	if c.renewEvery != nil {
		return *c.renewEvery
	}
	return c.watchdog / 3
}

func (c *Client) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// keep registers the hold h, so that Close ends it. It returns false if the Client is already closed.
func (c *Client) keep(h *hold) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return false
	}
	c.holds[h] = struct{}{}
	return true
}

func (c *Client) drop(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.holds, h)
}
