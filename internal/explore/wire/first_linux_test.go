package wire_test

import (
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/redis"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/localserver"
	"github.com/oversell/oversell/internal/localserver/localservertest"
)

// An ordered gate is slow to take note of First, and hears of Passed meanwhile if it can.
type ordered struct {
	wire.Open
	passed chan *wire.Command
	early  chan *wire.Command
}

func (g *ordered) First(o *wire.Command) {
	select {
	case p := <-g.passed:
		if p == o {
			g.early <- o
		}
	case <-time.After(50 * time.Millisecond): // nothing hangs on it: the answer takes far less
	}
}

func (g *ordered) Passed(o *wire.Command) {
	select {
	case g.passed <- o:
	default: // nobody is in First
	}
}

// TestFirst: no command reaches its server before the gate knows that it is the first, or
// the gate would hear of its end before its beginning.
func TestFirst(t *testing.T) {
	localservertest.SkipShort(t)
	group, err := localserver.NewGroup()
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	server, err := localserver.StartRedis(group)
	mayMiss(t, err)
	gate := &ordered{passed: make(chan *wire.Command), early: make(chan *wire.Command, 8)}
	client := goredis.NewClient(&goredis.Options{Addr: wiretest.Proxy(t, gate, redis.Protocol(), server.Addr), PoolSize: 1, MaxRetries: -1, DisableIdentity: true, Protocol: 2})
	defer client.Close()
	for range 3 {
		if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(gate.early); n > 0 {
		t.Errorf("%d commands had passed before First returned", n)
	}
}
