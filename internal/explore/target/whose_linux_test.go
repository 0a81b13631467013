package target

import (
	"maps"
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/wire"
)

// TestWhose: the buyer of a command, if two buyers with the same request and the same answers share one
// instance. Each pauses before it sends the command `SELECT stock`.
func TestWhose(t *testing.T) {
	const unknown = -1
	for _, c := range []struct {
		name     string
		next     map[string]int // known after these answers
		parallel bool           // as in habits
		flying   []int          // buyers whose first command is on its way; the last was released last
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
			r := twoInside(t, c.next)
			r.x.habits.parallel = c.parallel
			command := func(text string) *op { return &op{Command: &wire.Command{Text: text, Gated: true}} }
			for _, id := range c.flying {
				o := command("SELECT stock")
				r.whose.owns(o, id, o.Text)
				r.whose.released()
				r.x.gateTable.flying, r.current = append(r.x.gateTable.flying, o), id
			}
			var got []int
			for _, text := range c.comes {
				o := command(text)
				if err := r.whose.whose(o); err != nil {
					o.buyer = unknown
				}
				r.x.gateTable.held = append(r.x.gateTable.held, o)
				got = append(got, o.buyer)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("of buyers %v, want %v", got, c.want)
			}
			if r.whose.parallel {
				t.Error("a buyer seems to send while another of its commands is on its way")
			}
		})
	}
}

// TestWhoseAnswered: an answer to a buyer whose command waits shows that the command was another buyer's.
func TestWhoseAnswered(t *testing.T) {
	for _, inferred := range []bool{false, true} {
		r := twoInside(t, map[string]int{"SELECT stock": 1, isTold: 1})
		first := r.buyers[0]
		if !inferred {
			r.buyers[1].alive = false
		}
		o := &op{Command: &wire.Command{Text: "SELECT stock", Gated: true}}
		if err := r.whose.whose(o); err != nil || !first.sent(o) {
			t.Fatalf("of buyer %d, %v; want buyer 1", o.buyer, err)
		}
		r.x.gateTable.held = append(r.x.gateTable.held, o)
		first.alive, first.told = false, true
		if err := r.whose.answered(); (err != nil) != inferred {
			t.Errorf("two buyers: %v; %v", inferred, err)
		}
	}
}

// twoInside returns a run with two buyers inside a shared program. Both have the same way, and next is
// known on it.
func twoInside(t *testing.T, next map[string]int) *run {
	t.Helper()
	f, err := newFloor(app.Ignore{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := &Runner{gateTable: f, shared: true, app: &app.App{Buyers: make([]app.Request, 2)}}
	r := x.newRun(false)
	for _, b := range r.buyers {
		b.alive = true
		r.markRunnable(b.id)
	}
	x.habits.next = map[way]map[string]int{r.buyers[0].way: maps.Clone(next)}
	return r
}

// TestOrderOfAnswers: the answer of a buyer that was unlocked in the server is not delivered before that of
// the buyer that unlocked it, whichever comes first.
func TestOrderOfAnswers(t *testing.T) {
	r := twoInside(t, nil)
	f := r.x.gateTable
	unlock := &op{Command: &wire.Command{Text: "SELECT pg_advisory_unlock(1)", Gated: true}, buyer: 1}
	locked := &op{Command: &wire.Command{Text: "SELECT pg_advisory_lock(1)", Gated: true}, buyer: 2}
	r.current, f.flying, f.answered = 1, []*op{unlock}, []*op{locked}
	if moved, err := r.settling.handOver(-1); moved || err != nil || len(f.answered) != 1 {
		t.Errorf("the answer to the lock is delivered first: %v, %v", moved, err)
	}
	if r.settling.uncertain(f.seq.Load()) {
		t.Error("the unlock waits in the server, so it is not answered before the lock")
	}
	f.flying, f.answered = nil, []*op{locked, unlock}
	if r.settling.uncertain(-1) {
		t.Error("both have come")
	}
}
