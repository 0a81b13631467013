package target

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/require"
)

// TestWhose: two buyers with the same request and the same answers share one instance, and each pauses before it
// sends `SELECT stock`. The cases say which buyer counts as the sender of each command.
func TestWhose(t *testing.T) {
	const unknown = -1
	for _, c := range []struct {
		name     string
		next     map[string]int // how often each command is known to come after these answers
		parallel bool           // as in habits
		flying   []int          // buyers whose first command has no answer, in the order of release
		comes    []string
		want     []int
	}{
		{name: "both pause", next: map[string]int{"SELECT stock": 1}, comes: []string{"SELECT stock", "SELECT stock"}, want: []int{1, 2}},
		{name: "a command is on its way when the other buyer's pause ends", next: map[string]int{"SELECT stock": 1}, flying: []int{1}, comes: []string{"SELECT stock"}, want: []int{2}},
		{name: "the same, if buyers send in parallel", next: map[string]int{"SELECT stock": 1}, parallel: true, flying: []int{1}, comes: []string{"SELECT stock"}, want: []int{2}},
		{name: "each sends the command twice at once", next: map[string]int{"SELECT stock": 2}, parallel: true, flying: []int{1}, comes: []string{"SELECT stock"}, want: []int{unknown}},
		{name: "one has sent another command, too", next: map[string]int{"SELECT stock": 1, "SELECT price": 1}, parallel: true, flying: []int{1}, comes: []string{"SELECT price"}, want: []int{unknown}},
		{name: "a command out of nowhere", next: map[string]int{"SELECT stock": 1}, flying: []int{1, 2}, comes: []string{"SELECT stock"}, want: []int{unknown}},
		{name: "a command that is not known", next: map[string]int{"SELECT stock": 1}, comes: []string{"SELECT price"}, want: []int{unknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var now gates.Commands
			a, _ := inside(t, 2, c.next, &now)
			a.habits.parallel = c.parallel
			command := func(text string) *gates.Op { return &gates.Op{Command: &wire.Command{Text: text, Gated: true}} }
			for _, id := range c.flying {
				o := command("SELECT stock")
				a.owns(o, id, o.Text)
				a.released()
				now.Flying, a.buyers.Current = append(now.Flying, o), id
			}
			var got []int
			for _, text := range c.comes {
				o := command(text)
				if err := a.whose(o); err != nil {
					o.Buyer = unknown
				}
				now.Held = append(now.Held, o)
				got = append(got, o.Buyer)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("of buyers %v, want %v", got, c.want)
			}
			if a.parallel {
				t.Error("a buyer seems to send while another of its commands is on its way")
			}
		})
	}
}

// TestWhoseAnswered: if a buyer is answered while its command waits, the command was sent by another buyer.
func TestWhoseAnswered(t *testing.T) {
	for _, inferred := range []bool{false, true} {
		var now gates.Commands
		buyers := 1
		if inferred {
			buyers = 2
		}
		a, answer := inside(t, buyers, map[string]int{"SELECT stock": 1, isTold: 1}, &now)
		first := a.buyers.Of(1)
		o := &gates.Op{Command: &wire.Command{Text: "SELECT stock", Gated: true}}
		if err := a.whose(o); err != nil || o.Buyer != first.ID {
			t.Fatalf("of buyer %d, %v; want buyer 1", o.Buyer, err)
		}
		now.Held = append(now.Held, o)
		answer()
		<-first.Answered
		if err := a.answered(); (err != nil) != inferred {
			t.Errorf("two buyers: %v; %v", inferred, err)
		}
	}
}

// TestWhoseLent: a pool may lend the connection of an open transaction to another buyer, if only that buyer could
// have sent the command. Otherwise the connection identifies the buyer.
func TestWhoseLent(t *testing.T) {
	const stock, price = "SELECT stock", "SELECT price"
	for _, c := range []struct {
		name    string
		waiting bool   // the owner's command has no answer yet
		next    string // the next command of the other buyer
		want    int
	}{
		{"the owner waits for a command", true, stock, 2},
		{"the owner waits for a command, and the other one would send another", true, price, 1},
		{"the owner is inside the program", false, stock, 1},
	} {
		var now gates.Commands
		a, _ := inside(t, 2, map[string]int{c.next: 1}, &now)
		if c.waiting {
			now.Flying = []*gates.Op{{Command: &wire.Command{Text: price}, Buyer: 1}}
		}
		o := &gates.Op{Command: &wire.Command{Text: stock, Gated: true}}
		a.open[o.Conn()] = []int{1}
		if err := a.whose(o); err != nil || o.Buyer != c.want {
			t.Errorf("%s: of buyer %d, %v; want buyer %d", c.name, o.Buyer, err, c.want)
		}
	}
}

// A loopback is a client.Server at an address of this machine.
type loopback struct{ net.Addr }

func (l loopback) Dial(ctx context.Context, _ string) (*net.TCPConn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", l.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

func (loopback) Said() string { return "" }

// inside returns the attribution of two buyers with the same history. The first `buyers` of them have a request inside
// a shared program. The map next has the known habits for that history. The returned function answers the first buyer.
func inside(t *testing.T, buyers int, next map[string]int, now *gates.Commands) (a *attribution, answer func()) {
	t.Helper()
	g, err := gates.New(&app.App{}, nil)
	require.NoError(t, err)
	program, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	all := client.New(g, make([]app.Request, 2))
	for _, b := range all.All {
		b.Request.URL = "http://shop/"
	}
	var conns []net.Conn
	for _, b := range all.All[:buyers] {
		require.NoError(t, all.Send(t.Context(), b, b.Request, loopback{program.Addr()}))
		conn, err := program.Accept()
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	t.Cleanup(func() {
		all.HangUp(all.All...)
		for _, c := range conns {
			_ = c.Close()
		}
		_, _ = program.Close(), g.End()
	})
	all.Current = 0
	a = newAttribution(func() gates.Commands { return *now }, all, naming.New(&naming.Varying{}, false), &habits{})
	a.habits.next = map[history]map[string]int{a.of(all.Of(1)).history: maps.Clone(next)}
	return a, func() { _, _ = io.WriteString(conns[0], "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }
}

// TestOrderOfAnswers: if one buyer's command unblocks another buyer in the server, the first buyer's answer is
// delivered first, even if it arrives later.
func TestOrderOfAnswers(t *testing.T) {
	const unlock, lock = "SELECT pg_advisory_unlock(1)", "SELECT pg_advisory_lock(1)"
	x, address := testRunner(t, &app.App{Shared: "program", Buyers: make([]app.Request, 2)}, unlock)
	d, table := x.newRun(false, false).delivery, x.programs.Gates.Table
	commands := map[string]*gates.Op{}
	for _, text := range []string{unlock, lock} {
		fmt.Fprintln(dial(t, address), text)
		now := when(t, x.programs.Gates, func(now gates.Commands) bool { return len(now.Fresh) > 0 && !now.Fresh[0].Behind })
		commands[text] = now.Fresh[0]
		table.Admit(now.Fresh[0])
		table.LetGo(now.Fresh[0])
	}
	now := when(t, x.programs.Gates, func(now gates.Commands) bool { return len(now.Answered) > 0 })
	commands[unlock].Buyer, commands[lock].Buyer, d.buyers.Current = 1, 2, 1
	if moved, err := d.HandOver(t.Context(), -1); moved || err != nil || len(table.Now().Answered) != 1 {
		t.Errorf("the answer to the lock is delivered first: %v, %v", moved, err)
	}
	if d.uncertain(now, x.programs.Gates.Pulse.Seq()) {
		t.Error("the unlock waits in the server, so it is not answered before the lock")
	}
	if d.uncertain(gates.Commands{Answered: []*gates.Op{commands[lock], commands[unlock]}}, -1) {
		t.Error("both have come")
	}
}
