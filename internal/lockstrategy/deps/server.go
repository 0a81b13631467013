package deps

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/purchase"
)

// The servers that a strategy may use besides the database, named as on the command
// line and in the errors that buyers see.
const (
	Redis     = "redis"
	Redlock   = "redlock" // the independent nodes, taken as one
	Zookeeper = "zookeeper"
	Etcd      = "etcd"
)

// Failed says which server did not do what a strategy asked of it: a *purchase.Unavailable, or
// nil when err is nil. An error that says so already stays unchanged. So does the answer of a
// healthy Redis that rejects a wrong command, which no retry can repair.
func Failed(server string, err error) error {
	var down *purchase.Unavailable
	if err == nil || errors.As(err, &down) || refusesFor(err, wrongCommand()) {
		return err
	}
	return &purchase.Unavailable{Server: server, Err: err}
}

// wrongCommand returns the prefixes of Redis's answers to a command that is wrong in any state of
// the server: keys in several slots of a cluster, or an invalid form (Redis cluster
// specification, "Keys hash tags"; Redis 7.0, server.c and cluster.c). WRONGTYPE is not one of
// them, since another program may have written the key.
func wrongCommand() []string {
	return []string{"CROSSSLOT ", "ERR unknown command", "ERR wrong number of arguments", "ERR syntax error"}
}

func refusesFor(err error, answers []string) bool {
	var answer redis.Error
	return errors.As(err, &answer) && slices.ContainsFunc(answers, func(a string) bool { return strings.HasPrefix(answer.Error(), a) })
}

// FailedFor is Failed for what was asked under a buyer's context. Where that ended the
// command, it is the context's cause: the buyer gave up, and the server may be well. A
// server that hung until its own time-out is down, though the wait is over meanwhile.
func FailedFor(ctx context.Context, server string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		if cause := purchase.Ended(ctx); cause != nil {
			return cause
		}
	}
	return Failed(server, err)
}
