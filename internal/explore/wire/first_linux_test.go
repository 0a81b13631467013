package wire_test

import (
	"net"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/redis"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// An ordered gate returns from First slowly, and records whether Passed is called meanwhile.
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
	case <-time.After(50 * time.Millisecond): // long enough: the answer takes far less time
	}
}

func (g *ordered) Passed(o *wire.Command) {
	select {
	case g.passed <- o:
	default: // First is not running
	}
}

// An attentive gate returns from Passed slowly, and observes the program meanwhile.
type attentive struct {
	wire.Open
	returned chan struct{} // receives when the program's call returns
	passed   chan *wire.Command
	left     chan error
	early    chan struct{}
}

func (g *attentive) Passed(o *wire.Command) {
	select {
	case <-g.returned:
		g.early <- struct{}{}
	case <-time.After(50 * time.Millisecond): // long enough: the call takes far less time
	}
	g.passed <- o
}

func (g *attentive) Left(_ *wire.Conn, err error) { g.left <- err }

// TestPassed: Passed returns before the program can act on the answer of a command. If the connection
// ends before the answer, Passed is not called.
func TestPassed(t *testing.T) {
	address := localservertest.Redis(t).Addr
	gate := &attentive{returned: make(chan struct{}), passed: make(chan *wire.Command, 8), left: make(chan error, 8), early: make(chan struct{}, 8)}
	program, err := new(net.Dialer).DialContext(t.Context(), "tcp", wiretest.Proxy(t, gate, redis.Protocol(), address))
	require.NoError(t, err)
	defer program.Close()
	if _, err := program.Write([]byte("SET key value\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := program.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	close(gate.returned)
	<-gate.passed
	if len(gate.early) > 0 {
		t.Error("the program had the answer before the gate knew of it")
	}
	if _, err := program.Write([]byte("BLPOP none 0\r\n")); err != nil {
		t.Fatal(err)
	}
	beside := goredis.NewClient(&goredis.Options{Addr: address, DisableIdentity: true})
	defer beside.Close()
	for info := ""; !strings.Contains(info, "blocked_clients:1"); {
		if info, err = beside.Info(t.Context(), "clients").Result(); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, program.Close())
	<-gate.left
	if len(gate.passed) > 0 {
		t.Errorf("%s has no answer, and has passed", (<-gate.passed).Text)
	}
}

// TestFirst: no command reaches its server before First has returned. Otherwise, the gate could see
// Passed before First.
func TestFirst(t *testing.T) {
	address := localservertest.Redis(t).Addr
	gate := &ordered{passed: make(chan *wire.Command), early: make(chan *wire.Command, 8)}
	client := goredis.NewClient(&goredis.Options{Addr: wiretest.Proxy(t, gate, redis.Protocol(), address), PoolSize: 1, MaxRetries: -1, DisableIdentity: true, Protocol: 2})
	defer client.Close()
	for range 3 {
		require.NoError(t, client.Set(t.Context(), "key", "value", 0).Err())
	}
	if n := len(gate.early); n > 0 {
		t.Errorf("%d commands had passed before First returned", n)
	}
}
