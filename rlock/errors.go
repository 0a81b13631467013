package rlock

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/redis/go-redis/v9"
)

// The errors of a lock, for errors.Is. An error of Redis or of the network is wrapped unchanged. After such an
// error, Redis may have granted the lock; if so, this package releases it.
var (
	// ErrNotObtained: another holder has the lock, and the time for waiting is over.
	ErrNotObtained = errors.New("another holder has the lock")
	// ErrNotHeld: this lease no longer has the lock. Nothing was changed.
	ErrNotHeld = errors.New("the lock is not held by this lease")
	// ErrLost is the cause with which the context of a lease ends when the lock is gone. It is also the cause
	// if no renewal was answered in time, since the lock may then be gone.
	ErrLost = errors.New("the lock was lost")
	// ErrNoAnswer: Redis did not answer within the wait. It is unknown whether another holder has the lock.
	ErrNoAnswer = errors.New("no answer from Redis within the wait")
	// ErrBadName: a name must have 1 to 512 bytes, of any value.
	ErrBadName = errors.New("the name of a lock has 1 to 512 bytes")
	// ErrBadSlots: on a Redis Cluster, the keys of a lock with this name would be in several
	// slots, and no script can run on them. A name without braces is valid, and so is one with a
	// part in braces, such as "shop:{stock}".
	ErrBadSlots = errors.New("a Redis Cluster would spread the keys of this name over several slots; give a name without braces, or with a part in braces")
	// ErrBadTTL: a lease time or watchdog timeout is below 1 ms, the resolution of Redis. Longer
	// times are rounded down to whole milliseconds.
	ErrBadTTL = errors.New("a lease lasts 1 ms or longer")
	// ErrClosed: the Client was closed.
	ErrClosed = errors.New("the lock client is closed")
)

// errWaitOver is the cause of a context that the option Wait has ended.
var errWaitOver = errors.New("the wait is over")

// maybeDone reports whether Redis may have run a command that failed with err. It returns false if Redis
// refused the command, or if there was no connection to send it on.
func maybeDone(err error) bool {
	var refused redis.Error
	var network *net.OpError
	switch {
	case err == nil, errors.As(err, &refused):
		return false
	case errors.As(err, &network):
		return network.Op != "dial"
	}
	return true
}

// unreachable reports whether err means that there is no connection to Redis, so that no waiter can reach it.
func unreachable(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.As(err, &network) && !network.Timeout()
}

// noAnswer returns the error of a command whose caller has stopped waiting.
func noAnswer(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == errWaitOver {
		return ErrNoAnswer
	}
	return cause
}

// waitEnded returns the error of a wait that its context has ended.
func waitEnded(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == errWaitOver {
		return ErrNotObtained
	}
	return cause
}
