package play_test

import (
	"encoding/csv"
	"errors"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/golden"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/level"
	"github.com/oversell/oversell/internal/tier"
)

//go:generate go test -run TestPar -timeout 60m -update .

var only = flag.String("only", "", "with -update: the one level whose par is computed")

// longest limits the search for one level. An incomplete search returns its best path, or the known
// one.
const longest = 2 * time.Minute

// TestPar: par.csv has the explorer's results. make soak also repeats the long searches.
func TestPar(t *testing.T) {
	tier.Test(t, "a search of each level")
	all := map[string]level.Par{}
	for _, l := range level.All() {
		known := l.Par()
		switch {
		case golden.Updating() && *only != "" && *only != l.Name, golden.Updating() && *only == "" && known.Way != "" && !known.Complete:
			all[l.Name] = known // a search that does not end runs only if requested by name
		case golden.Updating():
			all[l.Name] = computed(t, l)
			if !all[l.Name].Complete && known.Way != "" && known.Steps() <= all[l.Name].Steps() {
				all[l.Name] = known
			}
			t.Logf("%s: %+v", l.Name, all[l.Name])
		case known == (level.Par{}):
			t.Errorf("%s has no par: run make generate", l.Name)
		case !known.Complete:
			t.Logf("%s: its search does not end; TestWon plays its way", l.Name)
		case slow(l) && !tier.Soaking():
			t.Logf("%s is computed again by make soak", l.Name)
		default:
			expect.Equal(t, computed(t, l), known, l.Name, "run make generate")
		}
	}
	if !golden.Updating() {
		return
	}
	rows := [][]string{{"level", "way", "switches", "orders", "complete"}}
	for _, l := range level.All() {
		p := all[l.Name]
		rows = append(rows, []string{l.Name, p.Way, strconv.Itoa(p.Switches), strconv.Itoa(p.Orders), strconv.FormatBool(p.Complete)})
	}
	var text strings.Builder
	require.NoError(t, csv.NewWriter(&text).WriteAll(rows))
	require.NoError(t, os.WriteFile("level/par.csv", []byte(text.String()), 0o644))
}

// slow reports whether the search of every schedule takes seconds or more, as it does with an
// event.
func slow(l level.Level) bool {
	return !l.Unbreakable && len(l.Config.Events) > 0 || l.Par().Orders > 1000
}

func computed(t *testing.T, l level.Level) level.Par {
	t.Helper()
	begun := time.Now()
	defer func() { t.Logf("%s: %.1f s", l.Name, time.Since(begun).Seconds()) }()
	effort := play.Effort{Budget: longest, Bound: -1}
	if !l.Unbreakable {
		g := game(t, l)
		w, err := g.Hint(t.Context(), l.Goal, effort)
		if err = errors.Join(err, g.Close()); err != nil { // closed before firstBreak, whose explorer inspects all goroutines of the process
			t.Fatal(err)
		}
		if len(w.Tokens) == 0 && w.Complete {
			t.Fatalf("%s: no order reaches the goal", l.Name)
		}
		if !w.Complete {
			if way := firstBreak(t, l); len(w.Tokens) == 0 || len(way) < len(w.Tokens) {
				w.Tokens = way
			}
		}
		return level.Par{Way: strings.Join(w.Tokens, " "), Switches: explore.Switches(w.Tokens), Complete: w.Complete}
	}
	p, err := game(t, l).Prove(t.Context(), effort, nil)
	require.NoError(t, err)
	if !l.WonByProof(p) {
		t.Fatalf("%s: the claim is wrong: %+v", l.Name, p)
	}
	return level.Par{Orders: p.Explored, Complete: p.Complete}
}

// firstBreak returns the first violating schedule, shortened, of a level whose search does not end.
// It need not be the shortest.
func firstBreak(t *testing.T, l level.Level) []string {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{Name: engine.Embedded, Wait: time.Minute})
	require.NoError(t, err)
	defer e.Close()
	c := exploretest.Config(e, exploretest.Entry(t, l.Config.Strategy))
	c.Events, c.First, c.Symmetry, c.Budget = l.Config.Events, true, true, 20*time.Minute // takes 83 s on two shared cores
	r := exploretest.Search(t, c)
	if r.Witness == nil {
		t.Fatalf("%s: nothing was found that breaks", l.Name)
	}
	s, err := explore.ParseSchedule(r.Witness.Schedule)
	require.NoError(t, err)
	return s.Tokens
}

func game(t *testing.T, l level.Level) *play.Game {
	t.Helper()
	g, err := play.Open(t.Context(), l.Config)
	require.NoError(t, err, l.Name)
	t.Cleanup(func() {
		expect.NoError(t, g.Close())
	})
	return g
}
