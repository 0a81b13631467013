package rlock

import (
	"context"
	"fmt"
	"time"
)

// yieldTime is how long this process does not ask for the lock when it is the turn of other processes. If
// none of them wants the lock, it stays free for this time.
const yieldTime = time.Millisecond

// maxStreak limits the duration of consecutive handovers within this process. The number of handovers is
// limited too (HandOvers), but with long critical sections that alone would keep the other processes waiting
// for too long.
const maxStreak = 20 * time.Millisecond

// A grant is a lock that its holder has handed to a waiter of this process. The new lease counts from the
// time at which the command was sent.
type grant struct {
	sent  time.Time
	token int64
}

// chooseSuccessor returns the waiter to which the holder hands the lock directly, or nil if the lock is to be
// offered to all processes. A successor must not be asking Redis at the moment, and no other goroutine may
// use its Holder.
func (c *Client) chooseSuccessor(name, field string) (*line, *waiter) {
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
	if w.trying || w.isSuccessor || len(w.grant) > 0 || w.claim.shared || w.claim.slot.field == field {
		return nil, nil
	}
	if ln.streak == 0 {
		ln.offered = c.clock.Now()
	}
	if ln.streak >= ln.maxHandOvers || c.clock.Now().Sub(ln.offered) > maxStreak {
		ln.streak = 0
		return nil, nil
	}
	ln.streak++
	w.isSuccessor = true
	return ln, w
}

// handOver gives the lock to a waiter of this process in one round trip.
func (l *redisLock) handOver(ctx context.Context, field string, line *line, successor *waiter) (bool, error) {
	sent := l.client.clock.Now()
	reply, err := handover.run(ctx, l.client.redis, successor.claim.lock.tokenKeys(l.keys.lock),
		field, successor.claim.slot.field, successor.claim.ttl.Milliseconds()).Int64Slice()
	if err == nil && len(reply) != 2 {
		err = fmt.Errorf("the hand-over script returned %d numbers, not 2", len(reply))
	}
	granted := err == nil && reply[0] == 1
	var taken bool
	if granted {
		taken = line.give(successor, grant{sent: sent, token: reply[1]})
	} else {
		taken = line.wake(successor) // the successor must ask Redis itself
	}
	if !taken && (granted || maybeDone(err)) {
		successor.claim.undo(0) // release the lock, since the successor has given up in the meantime
	}
	return granted, err
}

// give hands the lock to the successor. It returns false if that waiter has given up.
func (ln *line) give(w *waiter, g grant) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	w.isSuccessor = false
	if w.gone {
		return false
	}
	w.grant <- g
	return true
}

// wake makes the successor ask Redis itself after a failed handover. It returns false if that
// waiter has given up.
func (ln *line) wake(w *waiter) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	w.isSuccessor = false
	if w.gone {
		return false
	}
	ln.nextPoll = ln.clock.Now()
	w.nudge()
	return true
}

// offered records that this process has just offered the lock to all subscribers. Redis notifies them in the
// order of their subscriptions, so the first process would nearly always get the lock and the last one never.
// In a burst of requests to 8 processes, one waited for 2.6 s. So after it has offered the lock, each process
// waits until all others have had their turn.
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

func (ln *line) yields() bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.yield <= 0 {
		return false
	}
	ln.yield--
	if soon := ln.clock.Now().Add(yieldTime); soon.Before(ln.nextPoll) {
		ln.nextPoll = soon
	}
	return true
}
