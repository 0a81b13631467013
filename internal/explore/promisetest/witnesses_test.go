package promisetest_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/golden"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// TestWitnesses: each file of docs/reference/witnesses shows the shortest violation of a strategy, with
// the current steps. The search that the file names finds this violation.
//
// With -update, the test rewrites an existing file from its replay string, and searches a schedule for
// a new file.
func TestWitnesses(t *testing.T) {
	tier.Test(t, "searches for many witnesses")
	shown := map[string]bool{}
	for _, e := range lockstrategy.All() {
		searches := e.WitnessSearches()
		if _, explored := e.Explored(promise.Explore, dialect.MySQL); explored && len(searches) == 0 && breaks(e) {
			t.Errorf("%s is promised to break, and no witness shows it: give its entry Traits.Witnesses, then run make generate", e.Name)
		}
		for _, w := range searches {
			file := filepath.Join(witnesses, e.Name+w.Suffix+".md")
			shown[file] = true
			t.Run(e.Name+w.Suffix, func(t *testing.T) {
				t.Parallel()
				testWitness(t, e.Name, w, file)
			})
		}
	}
	unshown(t, witnesses, shown)
}

// testWitness compares one file with the output of its replay string, and that string with the result
// of the search.
func testWitness(t *testing.T, strategy string, w lockstrategy.WitnessSearch, path string) {
	args := strings.Fields(strategy + " " + w.Flags)
	local := strings.Contains(w.Flags, "--engine local")
	if local {
		tier.Test(t, "needs servers")
	}
	got, err := os.ReadFile(path)
	if err != nil && !golden.Updating() {
		t.Fatalf("%v: run make generate", err)
	}
	line := replayLine.FindSubmatch(got)
	if line == nil && golden.Updating() {
		_, found, stderr := shopExplore(t, append(args, "--budget", "10m")...)
		all := replayLine.FindAllSubmatch([]byte(found), -1)
		if all == nil {
			t.Fatalf("shop explore %s finds no violation:\n%s%s", strings.Join(args, " "), found, stderr)
		}
		if line = all[0]; w.Suffix != "" {
			line = all[len(all)-1] // the search prints the schedule with a release of another holder's lock last
		}
	}
	if line == nil {
		t.Fatalf("%s has no replay line: run make generate", path)
	}
	t.Run("search", func(t *testing.T) { testWitnessSearch(t, args, w, string(line[1])) })
	golden.Compare(t, path, witnessPage(t, args, w, string(line[1]), local))
}

// testWitnessSearch runs the search that a page names. It must find the replay string of that page.
func testWitnessSearch(t *testing.T, args []string, w lockstrategy.WitnessSearch, line string) {
	switch {
	case golden.Updating():
		t.Skip("with -update, the test only writes the page")
	case slices.Contains(args, "--first"):
		t.Skip("the search ends at the first violation, which the page need not show")
	}
	tier.Soak(t, cmp.Or(w.Long, "the page's replay still breaks, and TestVerifyQuick searches the strategy"))
	_, found, stderr := shopExplore(t, append(args, "--budget", "10m")...)
	if !strings.Contains(found, "--replay "+line+"\n") {
		t.Errorf("shop explore %s finds another:\n%s%s", strings.Join(args, " "), found, stderr)
	}
}

// witnessPage returns the expected text of a file of docs/reference/witnesses.
func witnessPage(t *testing.T, args []string, w lockstrategy.WitnessSearch, line string, local bool) string {
	replay := []string{args[0]}
	if local {
		replay = append(replay, "--engine", "local")
	}
	replay = append(replay, "--replay", line)
	code, text, stderr := shopExplore(t, replay...)
	if stderr != "" || code > shoptest.Broken {
		t.Fatalf("shop explore %s: exit %d: %s", strings.Join(replay, " "), code, stderr)
	}
	_, diagram, _ := shopExplore(t, append(replay, "--format", "mermaid")...)
	_, outcome, _ := strings.Cut(text, "┘\n")
	shows, _, _ := strings.Cut(outcome, ":")
	shows = cmp.Or(map[string]string{"oversold": "oversells", "leaked": "loses a unit", "stalled": "stalls"}[shows], "is "+shows)
	which := "first"
	if strings.Contains(diagram, "deleted the lock of") {
		shows, which = "releases another holder's lock", "second"
	}
	title := "`" + args[0] + "` " + shows
	if at := slices.Index(args, "--events"); at > 0 {
		title += ", event `" + args[at+1] + "`"
	}
	page := "<!-- go generate ./internal/explore/promisetest -->\n# Witness: " + title + "\n\n" +
		"This page shows developers the shortest schedule in which `" + args[0] + "` " + shows + ":\n\n" +
		"    ./shop explore " + strings.Join(args, " ") + "\n    ./shop explore " + strings.Join(replay, " ") + "\n\n"
	if e, _ := lockstrategy.ByName(args[0]); e.Lock.FreesAnothers && slices.Contains(args, "expire") {
		page += "If the search prints two witnesses, this page shows the " + which + ".\n\n"
	}
	if strings.Contains(diagram, "ex 3600") {
		page += "The TTL is one hour (`ex 3600`).\n\n"
	}
	page += "```mermaid\n" + diagram + "```\n"
	if strings.HasPrefix(outcome, "holds") {
		page += "\nHere no unit is sold twice. But a third buyer could now take the key while buyer 2 is in its critical section.\n"
	}
	return page
}

func shopExplore(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return shoptest.Run(t, append([]string{"explore"}, args...)...)
}

// breaks reports whether the catalogue promises a violation under a condition that applies to every
// database. Other conditions, such as a failover, have no event in the explorer.
func breaks(e lockstrategy.Entry) bool {
	for c, promised := range e.Promise {
		if promise.On(c) == "" && promised != verdict.Holds {
			return true
		}
	}
	return false
}
