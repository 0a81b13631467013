package rlock

import (
	"context"
	"fmt"
	"time"
)

// A ClientOption sets up a Client.
type ClientOption func(*Client)

// WatchdogTimeout is how long a lease lasts that was taken without LeaseTime: 1 ms or longer, 30 s by
// default. The watchdog renews the lease every RenewEvery. If the holder's process dies, the lock is free
// after that time at the latest. With less than about 100 ms, a short pause of the process loses the lock.
//
// Source: Redisson, Config.lockWatchdogTimeout.
func WatchdogTimeout(d time.Duration) ClientOption {
	return func(c *Client) { c.watchdog = d }
}

// RenewEvery is the time from a grant or a renewal to the next renewal; a third of WatchdogTimeout by
// default. It must be above 0 and below WatchdogTimeout; otherwise Lock returns ErrBadTTL. With a shorter
// time, a lease survives a longer outage of Redis, but needs more commands.
func RenewEvery(d time.Duration) ClientOption {
	return func(c *Client) { c.renewEvery = &d }
}

// RenewalTimer sets the timer of the watchdogs, for a test that decides when a renewal is due; the default is
// the clock's AfterFunc. The argument ctx has the values of the context that was given to Lock, and never ends.
// The timer must call `renew` with ctx or a child of it.
func RenewalTimer(after func(ctx context.Context, d time.Duration, renew func(context.Context)) Timer) ClientOption {
	return func(c *Client) { c.renewalTimer = after }
}

// FairWait is how long a waiter of a fair lock may be silent when its turn has come, before it counts as dead;
// 5 minutes by default. Services that share a fair lock need the same value. In a call with the option Wait,
// that time replaces FairWait.
//
// Source: Redisson, Config.fairLockWaitTimeout.
func FairWait(d time.Duration) ClientOption {
	return func(c *Client) { c.fairWait = d }
}

// HandOvers is how often in a row a holder of this Client may hand a lock directly to a waiter of this
// Client; 16 by default. A handover takes one round trip, and overtakes the waiters of other processes.
// After the last handover in a row, or 20 ms after the first, the lock is offered to all processes. 0
// means no handovers. Fair locks ignore this option.
func HandOvers(n int) ClientOption {
	return func(c *Client) { c.handOvers = n }
}

// Replicas makes each grant wait until n replicas have stored it (the command WAIT); n is 0 by default. The
// parameter `within` is the maximum wait: 1 ms or longer, and less than the ReadTimeout of the go-redis
// client, which limits the answer. If fewer replicas have the grant by then, it is given back, and the caller
// continues to wait for the lock. With Replicas, there are no handovers within a process.
//
// A lock then survives a failover to one of those replicas. This is not consensus. A primary that
// is cut off from its replicas continues to renew the locks that it granted before, while the
// elected replica lets them expire. Renewals do not wait for replicas.
//
// Source: Redis documentation, WAIT, "Consistency and WAIT".
func Replicas(n int, within time.Duration) ClientOption {
	return func(c *Client) { c.replicas, c.replicateWithin = n, max(within, time.Millisecond) }
}

// ID names the client in the holders' fields; a random UUID by default. Two clients with the same ID may take
// each other's locks for their own.
func ID(id string) ClientOption {
	return func(c *Client) { c.id = id }
}

// Observer sets a function that is called at each Event, by several goroutines at once. It must return
// quickly, and must not call this package.
func Observer(observe func(Event)) ClientOption {
	return func(c *Client) { c.observe = observe }
}

// An Option applies to one call of Lock or TryLock.
type Option func(*request)

// Wait limits the wait for the lock, not its use; 0 or less means no wait. By default Lock waits
// forever, and TryLock not at all.
func Wait(d time.Duration) Option {
	return func(r *request) { r.wait = max(d, 0) }
}

// LeaseTime lets the lease expire after d, 1 ms or longer. No watchdog renews it.
func LeaseTime(d time.Duration) Option {
	return func(r *request) { r.ttl, r.autoRenewed = d, false }
}

// forever is a wait that only the context ends.
const forever time.Duration = -1

type request struct {
	wait        time.Duration // maximum wait for the lock; 0: one attempt
	callTimeout time.Duration // maximum time of the whole call, including the answers of Redis; 0: unlimited
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
	r.callTimeout = max(r.wait, 0)
	return r, nil
}
