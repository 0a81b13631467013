package play

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

func TestMain(m *testing.M) { exploretest.Main(m) }

func open(t *testing.T, c Config) *Game {
	t.Helper()
	g, err := Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		expect.NoError(t, g.Close())
	})
	return g
}

func playAll(t *testing.T, g *Game, tokens []string) Position {
	t.Helper()
	p := g.Position()
	for i, token := range tokens {
		var err error
		if p, err = g.Move(token); err != nil {
			t.Fatalf("move %d, %s: %v", i+1, token, err)
		}
	}
	return p
}

// replays runs the replay string of an end with the explorer, on another engine.
func replays(t *testing.T, p Position) {
	t.Helper()
	_, line, found := strings.Cut(p.End.Replay, " --replay ")
	if !found {
		t.Fatalf("no replay line: %q", p.End.Replay)
	}
	s, err := explore.ParseSchedule(line)
	require.NoError(t, err)
	e, err := engine.Open(t.Context(), engine.Config{Name: engine.Embedded, Wait: wait})
	require.NoError(t, err)
	defer e.Close()
	c := exploretest.Config(e, exploretest.Entry(t, s.Strategy))
	c.Buyers, c.Stock, c.Units, c.Shared, c.Events = s.Buyers, s.Stock, s.Units, s.Shared, explore.Events(s.Shared)
	x, err := explore.New(t.Context(), c)
	require.NoError(t, err)
	defer x.Close()
	w, err := x.Replay(t.Context(), line)
	require.NoError(t, err)
	if w.Verdict != p.End.Verdict || w.Why != p.End.Why || !reflect.DeepEqual(w.Steps, p.Steps) {
		t.Errorf("%s: replayed %s: %s; played %s: %s\n%+v\n%+v", line, w.Verdict, w.Why, p.End.Verdict, p.End.Why, w.Steps, p.Steps)
	}
}

// TestSeen: a position contains the commands at the gates, and the state of the database and of
// Redis.
func TestSeen(t *testing.T) {
	g := open(t, Config{Strategy: "redis", Events: []explore.Event{explore.Expire, explore.Crash}})
	p := g.Position()
	if len(p.Buyers) != 2 || p.Stock != 1 || p.Records != 0 || len(p.Keys) != 0 || p.End != nil || len(p.Steps) != 0 {
		t.Fatalf("%+v", p)
	}
	if len(p.Choices) != 2 || p.Choices[0].Token != "1" || !strings.Contains(p.Choices[0].Text, "shop:lock:redis") {
		t.Fatalf("%+v", p.Choices)
	}
	p = playAll(t, g, []string{"1", "1", "2"})
	if len(p.Keys) != 1 || p.Keys[0].Buyer != 1 || p.Keys[0].Value != "token1" || p.Keys[0].Left < 0.9 {
		t.Errorf("keys %+v", p.Keys)
	}
	if p.Buyers[0].Read != "amount=1" || p.Buyers[0].State != Ready || p.Buyers[0].Next[0].Text != "BEGIN" {
		t.Errorf("buyer 1: %+v", p.Buyers[0])
	}
	if b := p.Buyers[1]; b.State != Waiting || !reflect.DeepEqual(b.For, []int{1}) || !strings.Contains(b.Waits, "redis") {
		t.Errorf("buyer 2: %+v", b)
	}
	var events []string
	for _, c := range p.Choices {
		if c.Event != "" {
			events = append(events, c.Token)
		}
	}
	expect.DeepEqual(t, events, []string{"expire", "crash1", "crash2"}, "events")
	if p = playAll(t, g, []string{"expire"}); len(p.Keys) != 0 || p.Buyers[1].State != Ready {
		t.Errorf("after the lease %+v, %+v", p.Keys, p.Buyers[1])
	}
	if p = playAll(t, g, []string{"crash1"}); p.Buyers[0].State != Crashed {
		t.Errorf("after the crash %+v", p.Buyers[0])
	}
}

// TestBlocked: on SQLite a second writer waits for the transaction of the first.
func TestBlocked(t *testing.T) {
	g := open(t, Config{Strategy: "for-update"})
	p := playAll(t, g, []string{"1"})
	for p.Buyers[1].State != Waiting {
		if len(p.Tokens) > 6 || p.End != nil {
			t.Fatalf("buyer 2 never waits: %+v", p)
		}
		p = playAll(t, g, []string{"2"})
	}
	if b := p.Buyers[1]; !reflect.DeepEqual(b.For, []int{1}) || !strings.Contains(b.Waits, "transaction") || b.Next[0].Ready || !p.Buyers[0].Open {
		t.Errorf("buyer 2: %+v, buyer 1: %+v", b, p.Buyers[0])
	}
}

// TestInMemory: a buyer waits for a lock in the memory of its process, which no command shows.
func TestInMemory(t *testing.T) {
	g := open(t, Config{Strategy: "mutex", Shared: true})
	p := playAll(t, g, []string{"1", "2"})
	holder, waiter := p.Buyers[0], p.Buyers[1]
	if !holder.Memory || waiter.State != Waiting || !reflect.DeepEqual(waiter.For, []int{1}) {
		t.Errorf("%+v\n%+v", holder, waiter)
	}
}

// TestUndo: undo returns to the position with one move less, also from the end of a schedule.
func TestUndo(t *testing.T) {
	g := open(t, Config{Strategy: "none"})
	stood := []Position{g.Position()}
	for g.Position().End == nil {
		stood = append(stood, playAll(t, g, []string{g.Position().Choices[0].Token}))
	}
	for n := len(stood) - 2; n >= 0; n-- {
		p, err := g.Undo()
		require.NoError(t, err)
		if !reflect.DeepEqual(p, stood[n]) {
			t.Fatalf("undone to %d:\n%+v\nwas\n%+v", n, p, stood[n])
		}
	}
	expect.ErrorIs(t, expect.ErrorOf(g.Undo()), ErrBadMove, "undo before the first")
	expect.DeepEqual(t, playAll(t, g, []string{"1", "2", "1"}).Tokens, []string{"1", "2", "1"})
	if p, err := g.Restart(); err != nil || !reflect.DeepEqual(p, stood[0]) {
		t.Errorf("restart: %v %+v", err, p)
	}
}

// TestBadMoves: invalid moves are refused in one line and change nothing.
func TestBadMoves(t *testing.T) {
	g := open(t, Config{Strategy: "none"})
	before := playAll(t, g, []string{"1"})
	for _, token := range []string{"", "3", "expire", "1+2", "crash1", strings.Repeat("x", 1000), "a\nb"} {
		p, err := g.Move(token)
		if !errors.Is(err, ErrBadMove) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 200 {
			t.Errorf("%q: %v", token, err)
		}
		expect.DeepEqual(t, p, before, token)
	}
	playAll(t, g, []string{"2"})
}

// TestPlayed: for strategies with every trait, the shortest violation of the search can be played.
// It ends as predicted, and so does its replay string.
func TestPlayed(t *testing.T) {
	tier.Test(t, "plays every level")
	for _, c := range []struct {
		Config
		goal verdict.Verdict
	}{
		{Config{Strategy: "none"}, verdict.Oversold},
		{Config{Strategy: "none", Buyers: 3, Stock: 2, Units: 2}, verdict.Oversold},
		{Config{Strategy: "early-unlock", Shared: true}, verdict.Oversold},
		{Config{Strategy: "redis", Events: []explore.Event{explore.Expire}}, verdict.Oversold},
		{Config{Strategy: "setnx", Events: []explore.Event{explore.Crash}}, verdict.Stalled},
		{Config{Strategy: "setnx-ttl", Events: []explore.Event{explore.Expire}}, verdict.Unlocked},
		{Config{Strategy: "watchdog", Events: []explore.Event{explore.Forget}}, verdict.Oversold},
	} {
		t.Run(strings.Join([]string{c.Strategy, string(c.goal)}, "-"), func(t *testing.T) {
			g := open(t, c.Config)
			way, err := g.Hint(t.Context(), c.goal, Effort{Bound: 1})
			if err != nil || way.Token == "" {
				t.Fatalf("%+v, %v", way, err)
			}
			p := playAll(t, g, way.Tokens)
			if !p.End.Reached(c.goal) {
				t.Fatalf("%v ends %+v, not %s", way.Tokens, p.End, c.goal)
			}
			if p.Switches != way.Switches || !strings.Contains(p.End.Mermaid, "sequenceDiagram") || !strings.Contains(p.End.HTML, "</html>") {
				t.Errorf("%d switches, and the way has %d: %+v", p.Switches, way.Switches, p.End)
			}
			replays(t, p)
		})
	}
}

// TestProve: the proof succeeds for a strategy that holds and fails for one that breaks. A limited
// search proves nothing. The game keeps its position.
func TestProve(t *testing.T) {
	g := open(t, Config{Strategy: "conditional"})
	before := playAll(t, g, []string{"1"})
	asked := 0
	p, err := g.Prove(t.Context(), Effort{Bound: -1}, func(int, int) { asked++ })
	if err != nil || !p.Holds || !p.Complete || p.Explored < 2 || asked == 0 {
		t.Errorf("%+v, %v", p, err)
	}
	expect.DeepEqual(t, g.Position(), before, "the position after the proof")
	playAll(t, g, []string{"2"})
	if err := g.Close(); err != nil { // a process can have only one open game
		t.Fatal(err)
	}

	g = open(t, Config{Strategy: "none"})
	p, err = g.Prove(t.Context(), Effort{Bound: -1}, nil)
	if err != nil || p.Holds || p.Verdict != verdict.Oversold || !strings.Contains(p.Replay, "--replay v1:none:b2:s1:") || p.Text == "" {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = g.Prove(t.Context(), Effort{Bound: -1, Budget: 1}, nil)
	if err != nil || p.Holds || p.Complete {
		t.Errorf("of a budget of nothing: %+v, %v", p, err)
	}
}

// TestEveryStrategy: each strategy on the embedded engine can be played to an end by always taking
// the first choice.
func TestEveryStrategy(t *testing.T) {
	tier.Test(t, "plays a game with every strategy")
	for _, name := range lockstrategy.Names() {
		t.Run(name, func(t *testing.T) {
			g, err := Open(t.Context(), Config{Strategy: name})
			if errors.Is(err, ErrMissing) {
				t.Skip(err)
			}
			require.NoError(t, err)
			defer g.Close()
			for p := g.Position(); p.End == nil; {
				if len(p.Choices) == 0 {
					t.Fatalf("no choice and no end: %+v", p)
				}
				if p, err = g.Move(p.Choices[0].Token); err != nil {
					t.Fatal(err)
				}
			}
			replays(t, g.Position())
		})
	}
}

// TestOldRun: an old run is repeated before its next step, and the player does not notice.
func TestOldRun(t *testing.T) {
	g := open(t, Config{Strategy: "redisson"})
	playAll(t, g, []string{"1", "2"})
	begun := g.round
	later := time.Now().Add(2 * oldRun)
	g.now = func() time.Time { return later }
	p := playAll(t, g, []string{"1"})
	if g.round == begun {
		t.Fatal("the old run goes on")
	}
	if !reflect.DeepEqual(p.Tokens, []string{"1", "2", "1"}) || len(p.Steps) != 3 {
		t.Errorf("%+v", p)
	}
	for p.End == nil {
		p = playAll(t, g, []string{p.Choices[0].Token})
	}
	replays(t, p)
}
