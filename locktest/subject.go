package locktest

import (
	"context"
	"time"
)

// A Lease is a lock that somebody holds.
//
// A Lease that also has the method Lost() <-chan struct{} or Context()
// context.Context tells its holder so when it is lost: the channel is closed,
// or the context ends.
type Lease interface {
	// Unlock gives the lock back. It may be called twice and after the lease
	// was lost; both must leave the lock of the next holder alone.
	Unlock(ctx context.Context) error
}

// A Client is one process as the lock server sees it: it shares nothing with
// another Client but the server. Its methods are called by many goroutines.
type Client interface {
	// Lock waits until the lock is had, ctx ends or the server fails. ctx
	// stays alive until the lease was unlocked, unless a check is about that.
	Lock(ctx context.Context, name string) (Lease, error)
	// Close frees the client. All its leases were unlocked before.
	Close() error
}

// A Subject is a kind of lock on one running server, what it claims, and what
// of the server the checks may use. The zero value of a claim is "does not
// claim"; a nil hook is "cannot be tried". Hooks are called by one goroutine
// at a time, beside clients that are busy.
type Subject struct {
	Name string // one word, for reports

	// Connect opens one more independent client on the same server.
	Connect func(ctx context.Context) (Client, error)

	// TTL is how long a lease lasts when its holder is dead. 300 ms to 2 s
	// keep the checks short and a busy machine harmless. 0: leases do not end.
	TTL time.Duration

	// Renews: a holder that lives keeps its lease past the TTL.
	Renews bool
	// RenewEvery is the interval of renewal; 0 where unknown.
	RenewEvery time.Duration

	// SignalsLoss: the leases have Lost or Context, and it fires within
	// LossBound of the loss, or of the time when the lease can no longer be
	// known to be held.
	SignalsLoss bool
	// LossBound is RenewEvery when 0, and TTL when that is 0 too.
	LossBound time.Duration

	// Fair: the first to ask gets the lock first, whichever client it is of.
	Fair bool

	// Forget takes the lock from its holder at the server, as a flush, a
	// failover or an administrator does.
	Forget func(ctx context.Context, name string) error
	// Remaining is what the server says is left of the lease; 0 when nobody
	// holds it.
	Remaining func(ctx context.Context, name string) (time.Duration, error)
	// Waiting is how many wait for the lock, where the server knows.
	Waiting func(ctx context.Context, name string) (int, error)
	// Freeze stops the server as SIGSTOP does. thaw lets it go on and may be
	// called after ctx has ended.
	Freeze func(ctx context.Context) (thaw func() error, err error)
	// Commands is how many commands the server has executed so far.
	Commands func(ctx context.Context) (int64, error)

	// Spec is how a child process finds this subject again; see Child. "":
	// Measure runs its contenders in this process.
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

// lost returns the channel by which a lease signals its loss, nil when it has
// none.
func lost(l Lease) <-chan struct{} {
	switch l := l.(type) {
	case interface{ Lost() <-chan struct{} }:
		return l.Lost()
	case interface{ Context() context.Context }:
		return l.Context().Done()
	}
	return nil
}
