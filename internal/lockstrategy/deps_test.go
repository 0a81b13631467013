package lockstrategy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/purchase"
)

type redisAnswer string

func (a redisAnswer) Error() string { return string(a) }
func (redisAnswer) RedisError()     {}

var _ redis.Error = redisAnswer("")

// TestFailed: a server that cannot serve is down. A server that rejects a wrong command is not.
func TestFailed(t *testing.T) {
	for err, down := range map[error]bool{
		errors.New("connection refused"):                                            true,
		redisAnswer("CLUSTERDOWN The cluster is down"):                              true,
		redisAnswer("LOADING Redis is loading the dataset in memory"):               true,
		redisAnswer("OOM command not allowed when used memory > 'maxmemory'."):      true,
		redisAnswer("ERR max number of clients reached"):                            true,
		redisAnswer("WRONGTYPE Operation against a key holding the wrong kind"):     true,
		errors.New("CROSSSLOT is in the name of a host"):                            true,
		redisAnswer("CROSSSLOT Keys in request don't hash to the same slot"):        false,
		fmt.Errorf("reset: %w", redisAnswer("ERR unknown command 'X', with args:")): false,
	} {
		var unavailable *purchase.Unavailable
		expect.Equal(t, errors.As(deps.Failed(deps.Redis, err), &unavailable), down, err, "down")
	}
}

// TestFailedFor: the end of a buyer's wait does not say that a server is down. A server that refuses
// is down, even if the wait has ended.
func TestFailedFor(t *testing.T) {
	over, cancel := context.WithCancelCause(t.Context())
	cancel(purchase.ErrBusy)
	late := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	for _, c := range []struct {
		ctx  context.Context
		err  error
		busy bool
	}{
		{over, late, true},
		{over, redis.ErrPoolTimeout, true},
		{over, context.DeadlineExceeded, true},
		{over, context.Canceled, true},
		{over, fmt.Errorf("lock: %w", purchase.ErrBusy), true},
		{over, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, false},
		{over, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, false},
		{over, io.EOF, false},
		{over, redisAnswer("CLUSTERDOWN The cluster is down"), false},
		{t.Context(), late, false},
	} {
		var down *purchase.Unavailable
		err := deps.FailedFor(c.ctx, deps.Redis, c.err)
		if busy := errors.Is(err, purchase.ErrBusy) && !errors.As(err, &down); busy != c.busy || !busy && !errors.As(err, &down) {
			t.Errorf("%v after %v: %v, want busy %v", c.err, context.Cause(c.ctx), err, c.busy)
		}
	}
	expect.NoError(t, deps.FailedFor(over, deps.Redis, nil), "after an answer")
}
