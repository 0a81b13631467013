package rlock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A line is the queue of the goroutines of this process that wait for one lock, in order of arrival. Fair
// locks have their queue in Redis instead. Only the waiter at the front asks Redis and listens for messages.
// So a release costs a process one attempt and one subscription, however many of its goroutines wait.
type line struct {
	name  string
	topic *topic
	clock Clock

	mu           sync.Mutex
	waiters      []*waiter
	nextPoll     time.Time // when the waiter at the front asks Redis again, unless a message comes first
	streak       int       // handovers within this process since it last offered the lock to all processes
	offered      time.Time // when the streak began
	maxHandOvers int       // the maximum of streak; after it, the other processes have a turn
	yield        int       // number of coming messages about a free lock that this process leaves to other processes
}

type waiter struct {
	claim *claim
	turn  chan struct{} // capacity 1; a value means that the waiter must check its position again
	grant chan grant    // capacity 1; receives the lock that was handed over

	// Guarded by line.mu.
	trying      bool // the waiter is asking Redis
	isSuccessor bool // a handover to it is in progress
	gone        bool
	failure     error // Redis is gone
}

func (c *claim) waitUnordered(ctx context.Context) (*Lease, error) {
	client, name := c.lock.client, c.lock.keys.lock
	var remaining time.Duration
	if c.wait == 0 || c.reentrant(ctx) || !client.waited(name) {
		lease, after, err := c.try(ctx)
		if lease != nil || err != nil {
			return lease, err
		}
		if c.wait == 0 {
			return nil, ErrNotObtained
		}
		remaining = after
	}
	w := &waiter{claim: c, turn: make(chan struct{}, 1), grant: make(chan grant, 1)}
	ln := client.joinLine(c.lock.keys, w, remaining)
	client.report(Waiting, name, c.slot.field)
	lease, err := w.wait(ctx, ln)
	client.leaveLine(ln, w, lease != nil)
	return lease, err
}

// reentrant reports whether the claim's holder already has the lock, and so need not wait for it.
func (c *claim) reentrant(ctx context.Context) bool {
	if !c.shared || !c.slot.begin(ctx) {
		return false
	}
	defer c.slot.end()
	return c.slot.current != nil && c.slot.current.held() > 0
}

func (w *waiter) wait(ctx context.Context, ln *line) (*Lease, error) {
	client := w.claim.lock.client
	timer, due := client.clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		front, nextPoll, failure := ln.position(w)
		if failure != nil {
			return nil, failure
		}
		var message <-chan struct{}
		var turn <-chan time.Time
		if front {
			timer.Reset(remaining(client.clock, nextPoll))
			message, turn = ln.topic.signal, due
		}
		select {
		case g := <-w.grant:
			return w.accept(ctx, g)
		case <-w.turn:
			continue
		case <-message:
			if ln.yields() {
				continue
			}
		case <-turn:
		case <-ctx.Done():
			return nil, waitEnded(ctx)
		case <-client.closed:
			return nil, ErrClosed
		}
		if !ln.beginTry(w) {
			continue
		}
		lease, remaining, err := w.claim.try(ctx)
		ln.endTry(w, remaining, err)
		if lease != nil || err != nil {
			return lease, err
		}
	}
}

// accept makes the lease from a lock that another goroutine has handed to this waiter.
func (w *waiter) accept(ctx context.Context, g grant) (*Lease, error) {
	s := w.claim.slot
	s.begin(context.WithoutCancel(ctx)) // no other goroutine knows the holder
	defer s.end()
	lease, _, err := w.claim.granted(g.sent, 1, g.token)
	return lease, err
}

// position reports whether w is at the front, so that it has to ask Redis, and until when it may sleep before
// it asks.
func (ln *line) position(w *waiter) (front bool, nextPoll time.Time, failure error) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.waiters[0] == w && !w.isSuccessor, ln.nextPoll, w.failure
}

func (ln *line) beginTry(w *waiter) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	w.trying = ln.waiters[0] == w && !w.isSuccessor && len(w.grant) == 0
	return w.trying
}

func (ln *line) endTry(w *waiter, remaining time.Duration, err error) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	w.trying = false
	ln.nextPoll = ln.clock.Now().Add(remaining)
	if unreachable(err) {
		for _, other := range ln.waiters {
			if other != w {
				other.failure = err
				other.nudge()
			}
		}
	}
}

func (w *waiter) nudge() {
	select {
	case w.turn <- struct{}{}:
	default: // an earlier signal has not been received yet
	}
}

func (c *Client) waited(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines[name] != nil
}

// joinLine adds w at the end of the line. leaveLine must follow.
func (c *Client) joinLine(k keys, w *waiter, remaining time.Duration) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	ln := c.lines[k.lock]
	if ln == nil {
		topic, listening := c.subscriber.join(k.channel)
		ln = &line{name: k.lock, topic: topic, clock: c.clock, maxHandOvers: c.handOvers, nextPoll: c.clock.Now()}
		if !listening {
			// The lock may become free before the subscription exists. Then the confirmation of
			// the subscription is the signal.
			ln.nextPoll = ln.nextPoll.Add(remaining)
		}
		c.lines[k.lock] = ln
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.waiters = append(ln.waiters, w)
	return ln
}

// leaveLine removes w from the line. If w has received a message or a lock and has not used it, the next
// waiter gets it.
func (c *Client) leaveLine(ln *line, w *waiter, obtained bool) {
	c.mu.Lock()
	ln.mu.Lock()
	w.gone = true
	front := ln.waiters[0] == w
	ln.waiters = slices.DeleteFunc(ln.waiters, func(other *waiter) bool { return other == w })
	switch {
	case len(ln.waiters) == 0:
		delete(c.lines, ln.name)
		c.subscriber.leave(ln.topic, linger)
	case front:
		ln.nextPoll = c.clock.Now()
		if obtained {
			ln.nextPoll = ln.nextPoll.Add(w.claim.ttl)
		}
		ln.waiters[0].nudge()
	}
	ln.mu.Unlock()
	c.mu.Unlock()

	select {
	case g := <-w.grant:
		go w.handOn(g)
	default:
	}
}

// handOn releases a lock that was handed to w after w had given up.
func (w *waiter) handOn(g grant) {
	ctx := context.WithoutCancel(w.claim.ctx)
	if lease, err := w.accept(ctx, g); err == nil {
		_ = lease.unlock(ctx) // if it fails, the lock expires
	}
}
