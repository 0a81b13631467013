package deps

import (
	"context"
	"errors"

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
// nil when err is nil. An error that says so already stays as it is.
func Failed(server string, err error) error {
	var down *purchase.Unavailable
	if err == nil || errors.As(err, &down) {
		return err
	}
	return &purchase.Unavailable{Server: server, Err: err}
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
