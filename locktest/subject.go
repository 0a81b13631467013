package locktest

import (
	"context"
	"time"
)

// A Lease is a lock that a client holds.
//
// A Lease may also have the method Lost() <-chan struct{} or Context()
// context.Context. When the lease is lost, the channel is closed or the
// context ends.
type Lease interface {
	// Unlock gives the lock back. It may be called twice, and after the lease
	// was lost. Neither call may release the lock of the next holder.
	Unlock(ctx context.Context) error
}

// A Client is one process from the lock server's view: it shares nothing with another Client except
// the server. Its methods must be safe for concurrent use.
type Client interface {
	// Lock waits until it has the lock, ctx ends or the server fails. ctx stays alive until the
	// lease was unlocked, except in the checks that end ctx earlier.
	Lock(ctx context.Context, name string) (Lease, error)
	// Close frees the client. All its leases have been unlocked before.
	Close() error
}

// A Subject is a kind of lock on one running server, with its claims and with the checks' access to
// the server. The zero value of a claim means "does not claim"; a nil hook means "cannot be tried".
// One goroutine at a time calls a hook, while clients are busy.
type Subject struct {
	Name string // one word, for reports

	// Connect opens one more independent client on the same server.
	Connect func(ctx context.Context) (Client, error)

	// TTL is how long a lease lasts after its holder has died. With 300 ms to 2 s the checks are
	// short and a busy machine does no harm. 0 means that leases do not end.
	TTL time.Duration

	// Renews: a holder that lives keeps its lease past the TTL.
	Renews bool
	// RenewEvery is the interval of renewal; 0 means unknown.
	RenewEvery time.Duration

	// SignalsLoss: the leases have Lost or Context. The signal comes within LossBound after the loss,
	// or after the time when the holder can no longer be sure of the lock.
	SignalsLoss bool
	// LossBound: 0 means RenewEvery, or TTL if RenewEvery is 0 too.
	LossBound time.Duration

	// Fair: waiters get the lock in the order in which they asked, whichever client they belong
	// to.
	Fair bool

	// Forget takes the lock from its holder at the server, as a flush, a failover or an
	// administrator does.
	Forget func(ctx context.Context, name string) error
	// Remaining returns the remaining time of the lease at the server, or 0 if the lock is free.
	Remaining func(ctx context.Context, name string) (time.Duration, error)
	// Waiting returns the number of waiters, if the server knows it.
	Waiting func(ctx context.Context, name string) (int, error)
	// Freeze stops the server as SIGSTOP does. thaw lets it continue and may be called after ctx
	// has ended.
	Freeze func(ctx context.Context) (thaw func() error, err error)
	// Commands returns how many commands the server has executed so far.
	Commands func(ctx context.Context) (int64, error)

	// Spec identifies this subject to a child process; see Child. With "", Measure runs its
	// contenders in this process.
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
