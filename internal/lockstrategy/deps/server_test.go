package deps

import (
	"errors"
	"fmt"
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
