package play_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/level"
	"github.com/oversell/oversell/internal/tier"
)

var slug = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

var sentence = regexp.MustCompile(`[.?!](\s|$)`)

// TestLevels: each level has all texts for a player and can be played.
func TestLevels(t *testing.T) {
	all := level.All()
	if len(all) < 16 {
		t.Errorf("%d levels", len(all))
	}
	seen := map[string]bool{}
	open := map[bool]int{}
	for _, l := range all {
		if !slug.MatchString(l.Name) || seen[l.Name] {
			t.Errorf("%q is no name, or is there twice", l.Name)
		}
		seen[l.Name] = true
		for what, text := range map[string]string{"title": l.Title, "task": l.Task, "thought": l.Thought, "deed": l.Deed, "source": l.Source} {
			if len(text) < 10 {
				t.Errorf("%s: its %s is %q", l.Name, what, text)
			}
		}
		if n := len(sentence.FindAllString(l.Learned, -1)); n < 2 || n > 4 {
			t.Errorf("%s: %d sentences on what was learned", l.Name, n)
		}
		if l.Minutes < 1 || l.Minutes > 20 {
			t.Errorf("%s takes %d minutes", l.Name, l.Minutes)
		}
		expect.NoError(t, l.Config.Check(), l.Name)
		if l.Goal == verdict.Holds || l.Unbreakable && l.Goal != "" || !l.Unbreakable && !l.Open && l.Goal == "" {
			t.Errorf("%s has the goal %q", l.Name, l.Goal)
		}
		if l.Open {
			open[l.Unbreakable]++
			expect.Equal(t, l.Shown(), "?", l.Name, "says how to win")
		}
	}
	if open[true] == 0 || open[false] == 0 {
		t.Errorf("%d open levels can be broken and %d cannot: a player that knows this need not look", open[false], open[true])
	}
	if _, known := level.Named("no-such-level"); known {
		t.Error("an unknown level was found")
	}
}

func named(t *testing.T, name string) level.Level {
	t.Helper()
	l, found := level.Named(name)
	if !found {
		t.Fatalf("no level %q", name)
	}
	return l
}

// TestWon: the best path, Par.Way, wins with its last step and not before.
func TestWon(t *testing.T) {
	for _, l := range level.All() {
		t.Run(l.Name, func(t *testing.T) {
			if l.Unbreakable {
				if l.Par().Way != "" || l.Par().Orders == 0 {
					t.Errorf("par %+v", l.Par())
				}
				return
			}
			g := game(t, l)
			for i, token := range strings.Fields(l.Par().Way) {
				if l.WonBy(g.Position().End) {
					t.Fatalf("won after %d steps", i)
				}
				require.NoError(t, expect.ErrorOf(g.Move(token)))
			}
			at := g.Position()
			if !l.WonBy(at.End) {
				t.Fatalf("not won: %+v", at.End)
			}
			if len(at.Tokens) != l.Par().Steps() || at.Switches != l.Par().Switches {
				t.Errorf("%d steps, %d switches; par is %s", len(at.Tokens), at.Switches, l.Par())
			}
		})
	}
}

// TestNotWon: a schedule with one buyer after the other does not win, nor does a claim without a
// proof.
func TestNotWon(t *testing.T) {
	for _, l := range level.All() {
		t.Run(l.Name, func(t *testing.T) {
			g := game(t, l)
			for g.Position().End == nil {
				require.NoError(t, expect.ErrorOf(g.Move(g.Position().Choices[0].Token)))
			}
			if end := g.Position().End; l.WonBy(end) || end.Broken {
				t.Errorf("%s: %s, and won: %t", end.Verdict, end.Why, l.WonBy(end))
			}
			for _, p := range []play.Proof{{}, {Explored: 10, Complete: true, Violations: 1}, {Explored: 10, Stopped: true}} {
				if l.WonByProof(p) {
					t.Errorf("won by %+v", p)
				}
			}
			expect.Equal(t, l.WonByProof(play.Proof{Holds: true, Complete: true}), l.Unbreakable, "a proof decides")
		})
	}
	broken := &play.End{Verdict: verdict.Oversold, Broken: true}
	if l := named(t, "lock-the-row"); l.WonBy(broken) {
		t.Error("an unbreakable level was won by a break")
	}
	if l := named(t, "dead-holder"); l.WonBy(broken) {
		t.Error("a level was won by another break than its goal")
	}
}

// follow obeys the hints, including steps back, until the level is won.
func follow(t *testing.T, l level.Level, g *play.Game) (back int) {
	t.Helper()
	for range 200 {
		if l.WonBy(g.Position().End) {
			return back
		}
		a, err := l.Next(t.Context(), g)
		switch {
		case err != nil:
			t.Fatal(err)
		case a.Claim:
			t.Fatalf("%s, which can be broken: %s", l.Name, a)
		case a.Token != "":
			require.NoError(t, expect.ErrorOf(g.Move(a.Token)), "the hint is no move")
		default:
			back++
			require.NoError(t, expect.ErrorOf(g.Undo()), a, "no step to take back")
		}
	}
	t.Fatal("the hints lead nowhere")
	return back
}

// TestNext: the third hint leads to a win, from the start and from any other position.
func TestNext(t *testing.T) {
	tier.Test(t, "plays every level")
	soak := tier.Soaking()
	random := rand.New(rand.NewPCG(18, 11))
	for _, l := range level.All() {
		t.Run(l.Name, func(t *testing.T) {
			g := game(t, l)
			if l.Unbreakable {
				if len(l.Config.Events) > 0 {
					tier.Soak(t, "the search of a level with events takes seconds")
				}
				if a, err := l.Next(t.Context(), g); err != nil || !a.Claim {
					t.Errorf("%+v, %v", a, err)
				}
				return
			}
			expect.Equal(t, follow(t, l, g), 0, "steps that the hints take back on the way from the start")
			if !soak && (len(l.Config.Events) > 0 || l.Config.Buyers > 2) || !l.Par().Complete {
				return // each step would need a search
			}
			for range 3 {
				require.NoError(t, expect.ErrorOf(g.Restart()))
				for range 1 + random.IntN(9) {
					at := g.Position()
					if at.End != nil {
						break
					}
					require.NoError(t, expect.ErrorOf(g.Move(at.Choices[random.IntN(len(at.Choices))].Token)))
				}
				from := strings.Join(g.Position().Tokens, " ")
				t.Logf("from %s: %d steps back", from, follow(t, l, g))
			}
		})
	}
}

// TestLost: if a buyer has bought before the other reads, no path to the goal is left, and the hint
// says so.
func TestLost(t *testing.T) {
	l := named(t, "sell-twice")
	g := game(t, l)
	for range 5 {
		require.NoError(t, expect.ErrorOf(g.Move("1")))
	}
	a, err := l.Next(t.Context(), g)
	if err != nil || !a.Lost || a.Token != "" {
		t.Errorf("%+v, %v", a, err)
	}
}
