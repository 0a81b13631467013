package deps

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

	"github.com/oversell/oversell/internal/purchase"
)

type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

var _ redis.Error = answer("")

// TestFailed: a server that cannot serve is down. A server that rejects a wrong command is not.
func TestFailed(t *testing.T) {
	for err, down := range map[error]bool{
		errors.New("connection refused"):                                       true,
		answer("CLUSTERDOWN The cluster is down"):                              true,
		answer("LOADING Redis is loading the dataset in memory"):               true,
		answer("OOM command not allowed when used memory > 'maxmemory'."):      true,
		answer("ERR max number of clients reached"):                            true,
		answer("WRONGTYPE Operation against a key holding the wrong kind"):     true,
		errors.New("CROSSSLOT is in the name of a host"):                       true,
		answer("CROSSSLOT Keys in request don't hash to the same slot"):        false,
		fmt.Errorf("reset: %w", answer("ERR unknown command 'X', with args:")): false,
	} {
		var unavailable *purchase.Unavailable
		if got := errors.As(Failed(Redis, err), &unavailable); got != down {
			t.Errorf("%v: down %v, want %v", err, got, down)
		}
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
		{over, answer("CLUSTERDOWN The cluster is down"), false},
		{t.Context(), late, false},
	} {
		var down *purchase.Unavailable
		err := FailedFor(c.ctx, Redis, c.err)
		if busy := errors.Is(err, purchase.ErrBusy) && !errors.As(err, &down); busy != c.busy || !busy && !errors.As(err, &down) {
			t.Errorf("%v after %v: %v, want busy %v", c.err, context.Cause(c.ctx), err, c.busy)
		}
	}
	if err := FailedFor(over, Redis, nil); err != nil {
		t.Errorf("%v after an answer", err)
	}
}
