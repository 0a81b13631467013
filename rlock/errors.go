package rlock

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/redis/go-redis/v9"
)

// The errors of a lock, for errors.Is. An error of Redis or of the network is
// wrapped unchanged; after one of those the lock may or may not have been taken,
// and this package releases it if it was.
var (
	// ErrNotObtained: somebody else has the lock, and the wait is over.
	ErrNotObtained = errors.New("somebody else has the lock")
	// ErrNotHeld: the lock is not, or no longer, that of this lease. Nothing
	// was changed.
	ErrNotHeld = errors.New("the lock is not held by this lease")
	// ErrLost is the cause with which the context of a lease ends when the lock
	// is gone, or may be gone because it could not be renewed in time.
	ErrLost = errors.New("the lock was lost")
	// ErrNoAnswer: Redis did not answer once within the wait. Whether somebody has
	// the lock is unknown.
	ErrNoAnswer = errors.New("no answer from Redis within the wait")
	// ErrBadName: a name has 1 to 512 bytes, of any value.
	ErrBadName = errors.New("the name of a lock has 1 to 512 bytes")
	// ErrBadSlots: a Redis Cluster would have the keys of a lock of this name in several
	// slots, and runs no script on them. A name without braces is good, and one with a
	// part in braces, such as "shop:{stock}".
	ErrBadSlots = errors.New("a Redis Cluster would spread the keys of this name over several slots; give a name without braces, or with a part in braces")
	// ErrBadTTL: a lease time or watchdog timeout is below 1 ms, the resolution
	// of Redis. Fractions of a millisecond above that are cut off.
	ErrBadTTL = errors.New("a lease lasts 1 ms or longer")
	// ErrClosed: the Client was closed.
	ErrClosed = errors.New("the lock client is closed")
)

// errWaitOver is the cause of a context that Wait has ended.
var errWaitOver = errors.New("the wait is over")

// maybeDone reports whether Redis may have run a command that failed with err.
// It has not when it refused the command, or when there was no connection to
// send it on.
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

// unreachable reports whether err says that there is no connection, which then
// holds for every waiter.
func unreachable(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.As(err, &network) && !network.Timeout()
}

// noAnswer is the error of a command whose caller has stopped waiting.
func noAnswer(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == errWaitOver {
		return ErrNoAnswer
	}
	return cause
}

// waitEnded is the error of a wait that its context has ended.
func waitEnded(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == errWaitOver {
		return ErrNotObtained
	}
	return cause
}
