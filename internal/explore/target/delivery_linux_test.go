package target

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/wire/wiretest"
	"github.com/oversell/oversell/internal/require"
)

// testRunner returns a runner without a program, with shut gates, and the address of a gate. The server behind the gate
// answers each command with the command's text, but does not answer those in silent.
func testRunner(t *testing.T, a *app.App, silent ...string) (x *Runner, address string) {
	t.Helper()
	x, err := newRunner(Spec{App: a, Servers: &app.Servers{}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = x.Close() })
	x.programs.Gates.Close()
	return x, wiretest.Echo(t, x.programs.Gates, silent...)
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// when waits until wanted is true for the current commands.
func when(t *testing.T, g *gates.Gates, wanted func(gates.Commands) bool) gates.Commands {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; g.Pulse.Wait(time.Millisecond) {
		if now := g.Table.Now(); wanted(now) {
			return now
		}
		if time.Now().After(deadline) {
			t.Fatal(g.Table.Now().Where())
		}
	}
}

// TestSetUp: a command that sets up a connection is not a step, unless its buyer may wait for it, or the connection was
// used before.
func TestSetUp(t *testing.T) {
	x, address := testRunner(t, &app.App{Buyers: []app.Request{{URL: "http://shop/"}}})
	r, table := x.newRun(false, false), x.programs.Gates.Table
	shop, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer shop.Close()
	require.NoError(t, r.buyers.Send(t.Context(), r.buyers.Of(1), x.programs.Request(1), loopback{shop.Addr()}))
	say := func(conn net.Conn, command string) (held int) {
		fmt.Fprintln(conn, command)
		when(t, x.programs.Gates, func(now gates.Commands) bool { return len(now.Fresh) > 0 && !now.Fresh[0].Behind })
		_, err := r.delivery.attribute()
		r.delivery.setUp()
		require.NoError(t, err)
		return len(r.repeating.mark(false))
	}
	first, second := dial(t, address), dial(t, address)
	if held := say(first, "SET autocommit=0"); held != 1 {
		t.Errorf("%d commands are held; the buyer may wait for the first", held)
	}
	if held := say(second, "SET autocommit=1"); held != 1 {
		t.Errorf("%d commands are held; the buyer does not wait for the second", held)
	}
	if answer, err := bufio.NewReader(second).ReadString('\n'); err != nil || answer != "SET autocommit=1\n" {
		t.Fatalf("%q, %v", answer, err)
	}
	if held := say(second, "UPDATE items SET stock = 0"); held != 2 {
		t.Errorf("%d commands are held; this one changes rows", held)
	}
	o := table.Now().Held[1]
	table.LetGo(o)
	when(t, x.programs.Gates, func(now gates.Commands) bool { return len(now.Answered) > 0 })
	table.Take(o)
	o.Deliver()
	if _, err := bufio.NewReader(second).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if held := say(second, "SET autocommit=1"); held != 2 {
		t.Errorf("%d commands are held; this one may end a transaction", held)
	}
}

// TestFree: a ping is a step if its buyer has an open transaction or a lock on another connection.
func TestFree(t *testing.T) {
	x, address := testRunner(t, &app.App{Shared: "program", Buyers: []app.Request{{URL: "http://shop/"}, {URL: "http://shop/"}}})
	shop, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer shop.Close()
	g := x.programs.Gates
	conn, _ := dial(t, address), dial(t, address)
	when(t, g, func(gates.Commands) bool { return len(g.Connections.InOrder()) == 2 })
	answers := bufio.NewReader(conn)
	for name, c := range map[string]struct {
		open, lock int // the buyer with an open transaction, and the one with a lock; 0: none
		same       bool
		come       []int
		step       bool
	}{
		"nothing is open":                          {come: []int{1}},
		"a transaction on another connection":      {open: 1, come: []int{1}, step: true},
		"a transaction on the same connection":     {open: 1, same: true, come: []int{1}},
		"the transaction belongs to another buyer": {open: 2, come: []int{1}},
		"a lock on another connection":             {lock: 1, come: []int{1}, step: true},
		"either buyer may have sent it":            {open: 1, come: []int{1, 2}, step: true},
	} {
		g.Table.HoldAll(true)
		fmt.Fprintln(conn, "PING")
		ping := when(t, g, func(now gates.Commands) bool { return len(now.Fresh) > 0 && !now.Fresh[0].Behind }).Fresh[0]
		d := x.newRun(false, false).delivery
		for _, id := range c.come {
			require.NoError(t, d.buyers.Send(t.Context(), d.buyers.Of(id), x.programs.Request(id), loopback{shop.Addr()}))
		}
		for _, of := range g.Connections.InOrder() {
			if (of == ping.Conn()) != c.same {
				continue
			}
			if c.open > 0 {
				d.whose.open[of] = []int{c.open}
			}
			if c.lock > 0 {
				d.strays.taken[stray{buyer: c.lock}] = of
			}
		}
		if passed := d.free(); passed == c.step || len(g.Table.Now().Fresh) > 0 != c.step {
			t.Errorf("%s: passed %v", name, passed)
		}
		if c.step {
			g.Pass(ping)
		}
		g.Table.HoldAll(false)
		fmt.Fprintln(conn, "PING")
		for range 2 {
			if _, err := answers.ReadString('\n'); err != nil {
				t.Fatalf("%s: %v; want the answer to both pings", name, err)
			}
		}
		d.buyers.HangUp(d.buyers.All...)
	}
}

// TestLimits: the time-out for a program does not count the time in which the explorer got no processor.
func TestLimits(t *testing.T) {
	shop, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer shop.Close()
	for says, limit := range map[string]struct {
		idle time.Duration
		wait func(r *run) error
	}{
		"no standstill within 30s":                  {wait: func(r *run) error { return r.settling.Settle(t.Context()) }},
		"no standstill within 1m0s":                 {idle: time.Minute, wait: func(r *run) error { return r.settling.Settle(t.Context()) }},
		"a buyer is not answered":                   {wait: func(r *run) error { return r.clearing.Served(t.Context()) }},
		"the program was never silent for 1h0m0s":   {wait: func(r *run) error { return r.programs.StaysQuiet(t.Context(), time.Now()) }},
		"inside the program sleeps for longer than": {wait: func(r *run) error { return r.settling.Wakes(t.Context()) }},
	} {
		x, _ := testRunner(t, &app.App{Buyers: []app.Request{{URL: "http://shop/"}}, IdleWithin: limit.idle, Quiet: time.Hour})
		r := x.newRun(false, false)
		require.NoError(t, r.buyers.Send(t.Context(), r.buyers.Of(1), x.programs.Request(1), loopback{shop.Addr()}))
		x.programs.Gates.Pulse.Since = func(time.Time) time.Duration { return 2 * time.Hour }
		if err := limit.wait(r); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want %q", err, says)
		}
		r.buyers.HangUp(r.buyers.All...)
	}
}
