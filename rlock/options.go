package rlock

import (
	"context"
	"fmt"
	"time"
)

// A ClientOption sets up a Client.
type ClientOption func(*Client)

// WatchdogTimeout is the lease of locks taken without LeaseTime, 1 ms or
// longer, 30 s by default. The watchdog renews it, see RenewEvery. When its
// process dies, the lock is free after that long at the latest. Below about
// 100 ms, a short pause of the process loses the lock.
//
// Source: Redisson, Config.lockWatchdogTimeout.
func WatchdogTimeout(d time.Duration) ClientOption {
	return func(c *Client) { c.watchdog = d }
}

// RenewEvery is how long after a grant or a renewal the watchdog renews, a third
// of WatchdogTimeout by default; above 0 and below WatchdogTimeout, or Lock
// returns ErrBadTTL. A shorter time survives a longer hang of Redis, at the cost
// of commands.
func RenewEvery(d time.Duration) ClientOption {
	return func(c *Client) { c.renewEvery = &d }
}

// RenewalTimer hands in the timer of the watchdogs, for a test that decides by
// itself when a renewal is due; the clock's AfterFunc by default. ctx has the values of
// the one that was given to Lock, and never ends; renew takes it, or a child.
func RenewalTimer(after func(ctx context.Context, d time.Duration, renew func(context.Context)) Timer) ClientOption {
	return func(c *Client) { c.renewalTimer = after }
}

// FairWait is how long past its turn a waiter of a fair lock may be silent before
// it counts as dead; 5 minutes by default. Services that share a fair lock need
// the same value. A waiter with Wait counts as dead after that time instead.
//
// Source: Redisson, Config.fairLockWaitTimeout.
func FairWait(d time.Duration) ClientOption {
	return func(c *Client) { c.fairWait = d }
}

// HandOvers is how many times in a row a lock may go from one holder of this
// Client to the next one, in one round trip and past the waiters of other
// processes; 16 by default. After that, and 20 ms after the first of them, it
// is offered to everybody; with 0 it always is. Fair locks ignore this.
func HandOvers(n int) ClientOption {
	return func(c *Client) { c.handOvers = n }
}

// Replicas has each grant wait until n replicas have it (the command WAIT), for that long,
// 1 ms or longer, and less than the ReadTimeout of the go-redis client, which bounds the
// answer. A grant that fewer have by then is given back, and the caller goes on
// waiting for the lock. 0, the default, waits for none. Hand-overs within a process are
// off then.
//
// It keeps a lock through a failover to one of those replicas. It is no consensus: a
// primary that is cut off from its replicas goes on renewing the locks that it has granted
// before, while the replica that was elected lets them run out; and renewals are not
// waited for.
//
// Source: Redis documentation, WAIT, "Consistency and WAIT".
func Replicas(n int, within time.Duration) ClientOption {
	return func(c *Client) { c.replicas, c.replicateWithin = n, max(within, time.Millisecond) }
}

// ID names the client in the holders' fields; a random UUID by default. Two
// clients with one ID may take each other's locks for their own.
func ID(id string) ClientOption {
	return func(c *Client) { c.id = id }
}

// Observer is called at each Event, by several goroutines at once. It must
// return soon, and must not call back into this package.
func Observer(observe func(Event)) ClientOption {
	return func(c *Client) { c.observe = observe }
}

// An Option is for one call of Lock or TryLock.
type Option func(*request)

// Wait bounds the wait for the lock, not its use; 0 or less means no wait at all.
// By default Lock waits for ever, and TryLock not at all.
func Wait(d time.Duration) Option {
	return func(r *request) { r.wait = max(d, 0) }
}

// LeaseTime lets the lease expire after d, 1 ms or longer. No watchdog renews it.
func LeaseTime(d time.Duration) Option {
	return func(r *request) { r.ttl, r.autoRenewed = d, false }
}

// forever is a wait that only the context ends.
const forever time.Duration = -1

// request has the options of one call.
type request struct {
	wait        time.Duration // for the lock; 0: one attempt; forever
	bound       time.Duration // of the whole call, the answers of Redis included; 0: none
	ttl         time.Duration
	autoRenewed bool
}

func (c *Client) request(wait time.Duration, options []Option) (request, error) {
	r := request{wait: wait, ttl: c.watchdog, autoRenewed: true}
	for _, option := range options {
		option(&r)
	}
	if r.ttl < time.Millisecond {
		return r, fmt.Errorf("%w: not %v", ErrBadTTL, r.ttl)
	}
	if every := c.renewal(); r.autoRenewed && (every <= 0 || every >= r.ttl) {
		return r, fmt.Errorf("%w: and is renewed before it ends, not every %v of %v", ErrBadTTL, every, r.ttl)
	}
	r.ttl = r.ttl.Truncate(time.Millisecond)
	r.bound = max(r.wait, 0)
	return r, nil
}
