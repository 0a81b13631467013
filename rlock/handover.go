package rlock

import (
	"context"
	"fmt"
	"time"
)

// yieldTime is how long the lock is left to the others when they are called
// first. Should none of them want it, no more is lost.
const yieldTime = time.Millisecond

// maxStreak bounds a streak in time, for sections that take long.
const maxStreak = 20 * time.Millisecond

// A grant is the lock, handed over by a command sent at that time.
type grant struct {
	sent  time.Time
	token int64
}

// heir chooses the waiter that gets the lock from the holder at once; nil when
// the lock is to be offered to everybody. Only a waiter that asks Redis for
// nothing meanwhile will do, and whose holder nobody else uses.
func (c *Client) heir(name, field string) (*line, *waiter) {
	c.mu.Lock()
	ln := c.lines[name]
	c.mu.Unlock()
	if ln == nil {
		return nil, nil
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if len(ln.waiters) == 0 {
		return nil, nil
	}
	w := ln.waiters[0]
	if w.trying || w.heir || len(w.grant) > 0 || w.claim.shared || w.claim.slot.field == field {
		return nil, nil
	}
	if ln.streak == 0 {
		ln.offered = c.clock.Now()
	}
	if ln.streak >= ln.patience || c.clock.Now().Sub(ln.offered) > maxStreak {
		ln.streak = 0
		return nil, nil
	}
	ln.streak++
	w.heir = true
	return ln, w
}

// handOver gives the lock to a waiter of this process in one round trip.
func (l *Lock) handOver(ctx context.Context, field string, line *line, heir *waiter) (bool, error) {
	sent := l.client.clock.Now()
	reply, err := handover.run(ctx, l.client.redis, heir.claim.lock.tokenKeys(l.keys.lock),
		field, heir.claim.slot.field, heir.claim.ttl.Milliseconds()).Int64Slice()
	if err == nil && len(reply) != 2 {
		err = fmt.Errorf("the hand-over script returned %d numbers, not 2", len(reply))
	}
	granted := err == nil && reply[0] == 1
	var taken bool
	if granted {
		taken = line.give(heir, grant{sent: sent, token: reply[1]})
	} else {
		taken = line.wake(heir) // it had better ask for itself
	}
	if !taken && (granted || maybeDone(err)) {
		heir.claim.undo(0) // it has given up meanwhile
	}
	return granted, err
}

// give hands the lock to the heir; false when it has gone.
func (ln *line) give(w *waiter, g grant) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	w.heir = false
	if w.gone {
		return false
	}
	w.grant <- g
	return true
}

// wake has the heir ask for itself after a hand-over that failed; false when
// it has gone.
func (ln *line) wake(w *waiter) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	w.heir = false
	if w.gone {
		return false
	}
	ln.look = ln.clock.Now()
	w.nudge()
	return true
}

// offered notes that this process has just given the lock to everybody who
// listens. Redis calls them in the order in which they subscribed, so that the
// first would get the lock nearly always, and the last never: with 8 processes
// in a rush one waited for 2.6 s. So each stands back until all others had
// their turn.
func (c *Client) offered(name string, listeners int) {
	c.mu.Lock()
	ln := c.lines[name]
	c.mu.Unlock()
	if ln == nil {
		return
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.yield = listeners - 1
}

// yields reports whether the message that came is for another process.
func (ln *line) yields() bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.yield <= 0 {
		return false
	}
	ln.yield--
	if soon := ln.clock.Now().Add(yieldTime); soon.Before(ln.look) {
		ln.look = soon
	}
	return true
}
