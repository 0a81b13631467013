package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/tier"
)

// exploreCLI runs the command as a user does.
func exploreCLI(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, append([]string{"explore"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestExploreExitCodes(t *testing.T) {
	tier.Test(t, "eight searches")
	for _, c := range []struct {
		args string
		code int
		says string // on stdout or stderr
	}{
		{"none", 1, "explored 92 of 92 schedules (19 runs, equal states merged)"},
		{"none --full", 1, "explored 92 of 92 schedules in"},
		{"conditional", 0, "explored 36 of 36 schedules"},
		{"none --format html", 1, "<b>oversold</b>: 2 units sold of 1 stocked"},
		{"conditional --format html", 0, "explored 36 of 36 schedules"},
		{"conditional --format mermaid", 0, "none breaks"},
		{"none --buyers 3 --first", 1, "oversold"},
		{"none --buyers 4 --first", 1, "oversold"}, // 8 are below
		{"conditional --buyers 8 --budget 500ms", 3, "(buyers alike"},
		{"conditional --overlap", 0, "not all that can happen"},
		{"none --replay v1:none:b2:s1:1*2.2+1.1*2.2*4", 1, "buyer 1: sold, buyer 2: sold"},
		{"setnx --buyers 3 --bound 1", 0, "(bound 1)"},
		{"redis-lua --budget 50ms", 3, "the search is incomplete"},
		{"for-update --events expire", 3, "expire could not happen at any step, since no lock expires"},
		{"for-update --events no-unlock", 3, "no-unlock could not happen at any step, since no lock of the strategy is released by a command of its own"},
		{"for-update --events expire,crash", 0, "(could not happen at any step: expire)"},
		{"conditional --full --max-schedules 10", 3, "explored 10 schedules"},
		{"conditional --full --max-schedules 36", 0, "explored 36 of 36 schedules"},
		{"conditional --max-schedules 3", 3, "explored 3 schedules, among them all of at most 0 preemptions"},
		{"none --max-schedules -1", 2, "--max-schedules must be 1 or more"},
		{"redis-lua --budget 50ms --bound 3", 3, "not complete"},
		{"redisson --budget 50ms --overlap", 3, "not complete"},
		{"serializable --budget 50ms --buyers 8 --first", 3, "not complete"},
		{"setnx --events crash", 1, "stalled"},
		{"conditional --units 2 --stock 3", 0, "stock 3, orders of 2 units: explored 36 of 36 schedules"},
		{"none --units 2 --stock 2 --first", 1, "oversold: 4 units sold of 2 stocked"},
		{"none --replay v1:none:b2:s2:u2:1*2.2*5.1*3", 1, "oversold: 4 units sold of 2 stocked"},
		{"none --units 0", 2, "--units must be between 1 and 8 (got 0)"},
		{"none --units 9", 2, "--units must be between 1 and 8 (got 9)"},
		{"none --units 3 --stock 2", 2, "--stock must be enough for one order (got --units 3 and --stock 2)"},
		{"none --replay v1:none:b2:s1:1*2.2*5.1*3", 1, "oversold: 2 units sold of 1 stocked"},
		{"none --replay v1:none:b2:s1:1*5.2", 0, "buyer 1: sold, buyer 2: sold_out"},
		{"", 2, "explore needs one strategy (got 0)"},
		{"none --events crash,", 2, `unknown event ""`},
		{"none --buyers 1", 2, "--buyers must be between 2 and 8 (got 1)"},
		{"none --buyers 9", 2, "--buyers must be between 2 and 8 (got 9)"},
		{"none --stock 0", 2, "--stock must be between 1 and 8 (got 0)"},
		{"none --format svg", 2, `unknown format "svg"`},
		{"none --budget 0s", 2, "--budget must be more than 0s"},
		{"mutex --instances shared --events crash", 2, "--events crash cannot be combined with --instances shared"},
		{"named-lock", 2, "SQLite has no locks by name"},
		{"zookeeper", 2, "not for zookeeper"},
		{"none --replay v1:redis:b2:s1:1.2", 2, "--replay is a string for strategy redis, not for none"},
		{"none --replay v7:none:b2:s1:1.2", 2, "version v7"},
		{"none --replay rubbish", 2, `invalid replay string "rubbish"; expected, for example, v1:none:`},
		{"none --replay v1:none:b2:s1:u0:1*5", 2, `unknown option "u0"`},
		{"none --replay v1:none:b2:s1:key:key:1*5", 2, `unknown option "key"`},
		{"none --replay v1:none:b2:s2:u1,2:1*2.2*5.1*3 --units 2,1", 2, "--units 2,1 contradicts the replay string"},
		{"none --replay v1:none:b2:s1:1*2.2*5.1*3 --one-key", 2, "--one-key true contradicts the replay string"},
		{"none --replay v1:none:b2:s1:1*2.2*5.1*3 --stock 5", 2, "--stock 5 contradicts the replay string"},
		{"none --replay v1:none:b2:s2:u1,2:1*2.2*5.1*3 --units 1,2 --stock 2", 1, "oversold: 3 units sold of 2 stocked"},
		{"none --before=", 2, "--before needs a check"},
		{"none --one-key --before sold-out-check", 0, "orders under one Idempotency-Key, with sold-out-check before the strategy: explored "},
		{"none --replay v1:none:b9:s1:1", 2, "expected buyers and stock such as b2:s1"},
		{"none --replay v1:none:b2:s0:1", 2, "expected buyers and stock such as b2:s1"},
		{"none --replay v1:none:b2:s1:1*5", 2, "the replay string ends after step 5"},
		{"none --replay v1:none:b2:s1:1*1000", 2, "is no step"},
		{"none --replay v1:none:b2:s1:", 2, "is no step"},
		{"setnx --replay v1:setnx:b2:s1:1.crash2", 2, "step 2 of the schedule is crash2"},
		{"transaction --engine local --local-db galera", 2, "use --local-db mariadb"},
		{"redis --db sqlite:///absent/shop.db", 2, "folder /absent does not exist"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, stdout, stderr := exploreCLI(t.Context(), strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(stdout+stderr, c.says) {
				t.Errorf("exit %d, want %d; want something with %q:\n%s%s", code, c.code, c.says, stdout, stderr)
			}
			if code >= 2 && strings.Count(stderr, "\n") != 1 {
				t.Errorf("not one line: %q", stderr)
			}
		})
	}
}

func TestExploreInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, stderr := exploreCLI(ctx, "none"); code != exitInterrupted {
		t.Errorf("exit %d, %q; want %d", code, stderr, exitInterrupted)
	}
}

// TestExploreJSON: the JSON members that scripts rely on.
func TestExploreJSON(t *testing.T) {
	_, stdout, _ := exploreCLI(t.Context(), "none", "--json")
	var report map[string]any
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	for _, member := range strings.Fields("strategy engine buyers stock events bound explored total complete violations seconds per_second witness") {
		if _, ok := report[member]; !ok {
			t.Errorf("no member %s", member)
		}
	}
	witness, _ := report["witness"].(map[string]any)
	steps, _ := witness["steps"].([]any)
	if witness["schedule"] == "" || witness["verdict"] != "oversold" || len(steps) != 10 {
		t.Errorf("witness %v", witness)
	}
	for _, member := range strings.Fields("buyer command result stock records") {
		if _, ok := steps[0].(map[string]any)[member]; !ok {
			t.Errorf("a step has no %s", member)
		}
	}
}

//go:generate go test -run TestWitnesses -timeout 60m -update-witnesses .

var updateWitnesses = flag.Bool("update-witnesses", false, "write docs/reference/witnesses")

// updateCommand writes docs/reference/witnesses. It writes an existing file from its replay string, and
// searches the schedule of a new one.
const updateCommand = "go test ./cmd/shop -run TestWitnesses -update-witnesses"

// TestWitnesses: docs/reference/witnesses shows each broken strategy's shortest violation, as the
// code runs it today, and the search that the file names finds it.
//
//	go test ./cmd/shop -run TestWitnesses -update-witnesses
func TestWitnesses(t *testing.T) {
	tier.Test(t, "searches for many witnesses")
	shown := map[string]bool{}
	for _, e := range lockstrategy.All() {
		searches := e.WitnessSearches()
		if _, explored := e.Explored(promise.Explore, dialect.MySQL); explored && len(searches) == 0 && breaks(e) {
			t.Errorf("%s is promised to break, and no witness shows it: give its entry Traits.Witnesses, then run %s", e.Name, updateCommand)
		}
		for _, w := range searches {
			file := e.Name + w.Suffix + ".md"
			shown[file] = true
			t.Run(e.Name+w.Suffix, func(t *testing.T) {
				t.Parallel()
				testWitness(t, e.Name, w, filepath.Join("../../docs/reference/witnesses", file))
			})
		}
	}
	files, err := filepath.Glob("../../docs/reference/witnesses/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !shown[filepath.Base(file)] {
			t.Errorf("no strategy has the witness %s", file)
		}
	}
}

// replayLine finds the schedule in a file of docs/reference/witnesses, and in the output of a search.
var replayLine = regexp.MustCompile(`--replay (v1:[^\s` + "`" + `]+)`)

// testWitness compares one file with the output of its replay string, and that string with the result
// of the search.
func testWitness(t *testing.T, strategy string, w lockstrategy.WitnessSearch, path string) {
	args := strings.Fields(strategy + " " + w.Flags)
	local := strings.Contains(w.Flags, "--engine local")
	if local {
		tier.Test(t, "needs servers")
	}
	got, err := os.ReadFile(path)
	if err != nil && !*updateWitnesses {
		t.Fatalf("%v: run %s", err, updateCommand)
	}
	line := replayLine.FindSubmatch(got)
	if line == nil && *updateWitnesses {
		_, found, stderr := exploreBuilt(t, append(args, "--budget", "10m")...)
		all := replayLine.FindAllSubmatch([]byte(found), -1)
		if all == nil {
			t.Fatalf("shop explore %s finds no violation:\n%s%s", strings.Join(args, " "), found, stderr)
		}
		if line = all[0]; w.Suffix != "" {
			line = all[len(all)-1] // the search prints the release of another holder's lock last
		}
	}
	if line == nil {
		t.Fatalf("%s has no replay line: run %s", path, updateCommand)
	}
	t.Run("search", func(t *testing.T) { testWitnessSearch(t, args, w, string(line[1])) })
	want := witnessPage(t, args, w, string(line[1]), local)
	if *updateWitnesses {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(got) != want {
		t.Errorf("%s is not what the code does now: run %s", path, updateCommand)
	}
}

// testWitnessSearch runs the search that the file names. It must find the replay string of the file.
func testWitnessSearch(t *testing.T, args []string, w lockstrategy.WitnessSearch, line string) {
	switch {
	case *updateWitnesses:
		t.Skip("it writes, and checks nothing")
	case w.Holds != "":
		t.Skip("the page gives the schedule, and a search reports violations")
	case slices.Contains(args, "--first"):
		t.Skip("it ends at the first that breaks, which need not be the one shown")
	}
	tier.Soak(t, cmp.Or(w.Long, "the replay shows that it still breaks, and TestVerifyQuick searches the strategy"))
	_, found, stderr := exploreBuilt(t, append(args, "--budget", "10m")...)
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
	code, text, stderr := exploreBuilt(t, replay...)
	if stderr != "" || code > exitBroken {
		t.Fatalf("shop explore %s: exit %d: %s", strings.Join(replay, " "), code, stderr)
	}
	_, diagram, _ := exploreBuilt(t, append(replay, "--format", "mermaid")...)
	_, outcome, _ := strings.Cut(text, "┘\n")
	shows, _, _ := strings.Cut(outcome, ":")
	shows = "is " + shows
	which := "first"
	if strings.Contains(diagram, "deleted the lock of") {
		shows, which = "releases another holder's lock", "second"
	}
	if w.Holds != "" {
		shows = w.Holds
	}
	title := args[0] + " " + shows
	if at := slices.Index(args, "--events"); at > 0 {
		title += ", event " + args[at+1]
	}
	search := ", in the shortest schedule. Search or replay it:\n\n    ./shop explore " + strings.Join(args, " ") + "\n"
	if w.Holds != "" {
		search = ". Replay it:\n\n"
	}
	page := "<!-- written by go generate ./cmd/shop -->\n# Witness: " + title + "\n\n" +
		"This page shows readers how `" + args[0] + "` " + shows + search + "    ./shop explore " + strings.Join(replay, " ") + "\n\n"
	if e, _ := lockstrategy.ByName(args[0]); e.Lock.FreesAnothers && slices.Contains(args, "expire") {
		page += "If the search prints two witnesses, this page shows the " + which + ".\n\n"
	}
	if strings.Contains(diagram, "ex 3600") {
		page += "The TTL is one hour (`ex 3600`), so a lease expires only by the event `expire`.\n\n"
	}
	page += "```mermaid\n" + diagram + "```\n"
	if w.Holds == "" && strings.HasPrefix(outcome, "holds") {
		page += "\nTwo buyers sell nothing twice here. But a third buyer can now take the key while buyer 2 is inside.\n"
	}
	return page
}

// exploreBuilt runs the built command.
func exploreBuilt(t *testing.T, args ...string) (code int, stdout, stderr string) {
	return exitOfCommand(t, plainCommand(t, append([]string{"explore"}, args...)...))
}

// breaks: the catalogue says so, under some fault that is no matter of one database alone:
// the explorer has nothing like a failover.
func breaks(e lockstrategy.Entry) bool {
	for c, promised := range e.Promise {
		if promise.On(c) == "" && promised != verdict.Holds {
			return true
		}
	}
	return false
}

// TestExploreExit: a break goes first; a lock that frees another's is one, unless it is
// known of it; then comes what was no proof.
func TestExploreExit(t *testing.T) {
	o := exploreOptions{strategy: "mine"}
	known := lockstrategy.LockPromise{FreesAnothers: true}
	never := []explore.Event{explore.Forget}
	for _, c := range []struct {
		name   string
		report explore.Report
		lock   lockstrategy.LockPromise
		code   int
	}{
		{"nothing breaks", explore.Report{Complete: true}, lockstrategy.LockPromise{}, 0},
		{"an order breaks", explore.Report{Complete: true, Violations: 1}, known, exitBroken},
		{"another's lock is freed", explore.Report{Complete: true, Foreign: 1}, lockstrategy.LockPromise{}, exitBroken},
		{"another's lock is freed, as known", explore.Report{Complete: true, Foreign: 1}, known, 0},
		{"another's lock is freed, as known, and the budget is spent", explore.Report{Foreign: 1}, known, exitInconclusive},
		{"the budget is spent", explore.Report{}, lockstrategy.LockPromise{}, exitInconclusive},
		{"nothing to strike", explore.Report{Complete: true, Events: never, Never: never}, lockstrategy.LockPromise{}, exitInconclusive},
	} {
		code := 0
		if exit := (*exitError)(nil); errors.As(o.exit(c.report, c.lock), &exit) {
			code = exit.code
		}
		if code != c.code {
			t.Errorf("%s: exit %d, want %d", c.name, code, c.code)
		}
	}
}
