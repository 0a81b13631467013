package deps

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/purchase"
)

// The servers that a strategy may use in addition to the database, named as on the command line and
// in the errors that buyers see.
const (
	Redis     = "redis"
	Redlock   = "redlock" // all independent nodes together
	Zookeeper = "zookeeper"
	Etcd      = "etcd"
)

// Failed returns a *purchase.Unavailable that names the server and wraps err. It returns nil for nil. It
// returns an error unchanged if it already names the server, or if it is the answer of a healthy Redis to a
// wrong command, which no retry can repair.
func Failed(server string, err error) error {
	var down *purchase.Unavailable
	if err == nil || errors.As(err, &down) || refusesFor(err, wrongCommand()) {
		return err
	}
	return &purchase.Unavailable{Server: server, Err: err}
}

// wrongCommand returns the prefixes of Redis's answers to a command that can never succeed. Its keys are in
// several slots of a cluster, or its form is invalid. WRONGTYPE is not in the list, since another program may
// have written the key. Sources: Redis cluster specification, "Keys hash tags"; Redis 7.0, server.c and
// cluster.c.
func wrongCommand() []string {
	return []string{"CROSSSLOT ", "ERR unknown command", "ERR wrong number of arguments", "ERR syntax error"}
}

func refusesFor(err error, answers []string) bool {
	var answer redis.Error
	return errors.As(err, &answer) && slices.ContainsFunc(answers, func(a string) bool { return strings.HasPrefix(answer.Error(), a) })
}

// FailedFor does the same as Failed for a command under a buyer's context. If the context ended the command,
// FailedFor returns the context's cause: the buyer gave up, and the server may only be slow. The caller can use
// purchase.Counter.Down to find out whether the server answers.
func FailedFor(ctx context.Context, server string, err error) error {
	if err == nil {
		return nil
	}
	if cause := purchase.Ended(ctx); cause != nil && (TimedOut(err) || errors.Is(err, cause)) {
		return cause
	}
	return Failed(server, err)
}

// TimedOut reports whether a Redis command failed only because of a timeout or the end of its context.
func TimedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) ||
		errors.As(err, &network) && network.Timeout()
}
