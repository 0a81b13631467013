package locktest

import (
	"context"
	"time"
)

// A Lease is a lock that a client holds.
//
// A Lease may also have the method Lost() <-chan struct{} or Context() context.Context. When the lease is
// lost, the channel is closed or the context ends.
type Lease interface {
	// Unlock gives the lock back. It may be called twice, and after the lease
	// was lost. Neither call may release the lock of the next holder.
	Unlock(ctx context.Context) error
}

// A Client looks like one process to the lock server: it shares nothing with another Client except the
// server. Its methods must be safe for concurrent use.
type Client interface {
	// Lock waits until it has the lock, ctx ends or the server fails. In most checks, ctx does not end before
	// the lease was unlocked; some checks end it earlier.
	Lock(ctx context.Context, name string) (Lease, error)
	// Close frees the client. All its leases have been unlocked before.
	Close() error
}

// A Subject is a kind of lock on one running server, with the properties that it claims. Its hooks, the
// fields with functions, give the checks access to the server. The zero value of a claim means that the lock
// does not claim the property. A nil hook means that a check cannot use it. Only one goroutine at a time
// calls a hook, but clients are busy meanwhile.
type Subject struct {
	Name string // one word, for reports

	// Connect opens one more independent client on the same server.
	Connect func(ctx context.Context) (Client, error)

	// TTL is how long a lease lasts after its holder has died. 0 means that leases do not end. Use 300 ms to
	// 2 s: the checks are then short, and a busy machine does no harm.
	TTL time.Duration

	// Renews: a running holder keeps its lease for longer than the TTL.
	Renews bool
	// RenewEvery is the interval of renewal; 0 means unknown.
	RenewEvery time.Duration

	// SignalsLoss: the leases have a method Lost or Context. The signal comes within LossBound after the
	// loss, or after the time when the holder can no longer be sure that it has the lock.
	SignalsLoss bool
	// LossBound limits the delay of that signal; 0 means RenewEvery, or TTL if RenewEvery is 0 too.
	LossBound time.Duration

	// Fair: waiters get the lock in the order in which they asked, across all clients.
	Fair bool

	// Forget removes the lock from the server while a holder has it, as a flush, a failover or an
	// administrator does.
	Forget func(ctx context.Context, name string) error
	// Remaining returns the remaining time of the lease at the server, or 0 if the lock is free.
	Remaining func(ctx context.Context, name string) (time.Duration, error)
	// Waiting returns the number of waiters, if the server knows it.
	Waiting func(ctx context.Context, name string) (int, error)
	// Freeze stops the server as SIGSTOP does. The function `thaw` lets it continue. It may be called after
	// ctx has ended.
	Freeze func(ctx context.Context) (thaw func() error, err error)
	// Commands returns how many commands the server has executed so far.
	Commands func(ctx context.Context) (int64, error)

	// Spec is the text from which Child, in a child process, makes the same Subject. If it is "", Measure
	// runs its contenders in this process.
	Spec string
}

func (s Subject) lossBound() time.Duration {
	switch {
	case s.LossBound > 0:
		return s.LossBound
	case s.RenewEvery > 0:
		return s.RenewEvery
	}
	return s.TTL
}

// lost returns the channel by which a lease signals its loss, or nil if it has none.
func lost(l Lease) <-chan struct{} {
	switch l := l.(type) {
	case interface{ Lost() <-chan struct{} }:
		return l.Lost()
	case interface{ Context() context.Context }:
		return l.Context().Done()
	}
	return nil
}
