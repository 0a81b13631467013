package promisetest_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/golden"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

//go:generate go test -run "TestByDatabase|TestWitnesses" -timeout 60m -update .

const (
	witnesses  = "../../../docs/reference/witnesses"
	byDatabase = witnesses + "/by-database"
)

// TestByDatabase covers strategies that break without an event on one database and hold on another.
// docs/reference/witnesses/by-database shows the same schedule on each database, and each run ends as
// promised.
func TestByDatabase(t *testing.T) {
	tier.Test(t, "needs servers")
	var on []*onLevel
	shown := map[string]bool{}
	for _, entry := range lockstrategy.All() {
		if !lockstrategy.DiffersByDatabase(entry) {
			continue
		}
		if on == nil {
			on = openLevels(t)
		}
		file := filepath.Join(byDatabase, entry.Name+".md")
		shown[file] = true
		t.Run(entry.Name, func(t *testing.T) {
			golden.Compare(t, file, sideBySide(t, entry, on))
		})
	}
	unshown(t, byDatabase, shown)
}

// unshown fails the test if a folder contains a page that belongs to no strategy.
func unshown(t *testing.T, folder string, shown map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.md")
	require.NoError(t, err)
	for _, file := range files {
		if !shown[file] {
			t.Errorf("no strategy has the page %s: delete it", file)
		}
	}
}

// onLevel is an engine at one of dialect.Levels.
type onLevel struct {
	level  dialect.Level
	engine *engine.Engine
}

func (l onLevel) flags() string {
	switch l.level.Name {
	case dialect.SQLite:
		return ""
	case dialect.MySQL:
		return engine.Flags(engine.Local, "", "")
	}
	return engine.Flags(engine.Local, l.level.Name, "")
}

// openLevels opens an engine for each level. PostgreSQL's levels are sessions on one server.
func openLevels(t *testing.T) (all []*onLevel) {
	postgres := enginetest.Postgres(t)
	for _, l := range dialect.Levels() {
		if dialect.WhyUnexplored(l.Name) != "" {
			continue
		}
		on := &onLevel{l, nil}
		switch l.Name {
		case dialect.SQLite:
			on.engine = enginetest.Embedded(t)
		case dialect.MySQL:
			on.engine = enginetest.Local(t)
		case dialect.Postgres:
			on.engine = postgres
		default:
			on.engine = atLevel(t, postgres, l.Name)
		}
		if on.engine.Database != l.Name {
			t.Fatalf("opened %s, want %s", on.engine.Database, l.Name)
		}
		all = append(all, on)
	}
	return all
}

// atLevel opens the database of e with sessions at another isolation level.
func atLevel(t *testing.T, e *engine.Engine, name string) *engine.Engine {
	t.Helper()
	c := e.URLs
	level := strings.ReplaceAll(strings.TrimPrefix(name, dialect.Postgres+"-"), "-", " ")
	c.DB += "&default_transaction_isolation=" + url.PathEscape(level)
	opened, err := engine.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// replayLine finds the schedule in a file of docs/reference/witnesses, and in the output of a search.
var replayLine = regexp.MustCompile(`--replay (v1:[^\s` + "`" + `]+)`)

// sideBySide returns the page of a strategy: the steps that are the same on all databases, and the
// continuation on each.
func sideBySide(t *testing.T, entry lockstrategy.Entry, on []*onLevel) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(witnesses, entry.Name+".md"))
	require.NoError(t, err)
	line := replayLine.FindSubmatch(text)
	if line == nil {
		t.Fatalf("docs/reference/witnesses/%s.md has no replay line", entry.Name)
	}
	broken, err := explore.ParseSchedule(string(line[1]))
	require.NoError(t, err)
	var all []played
	for _, l := range on {
		want, explored := entry.Explored(promise.Explore, l.level.Name)
		if !explored || want == "" {
			continue
		}
		p := play(t, entry, l, broken)
		if p.Verdict != want {
			t.Errorf("on %s: %s (%s), promised is %s", l.level.Title, p.Verdict, p.Schedule, want)
		}
		all = append(all, p)
	}
	same := sharedSteps(all)
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- go generate ./internal/explore/promisetest -->\n# Witness: %s, by database\n\n", entry.Name)
	fmt.Fprintf(&b, "This page shows why `%s` oversells on one database and not on another, for readers who choose a database.\n\n", entry.Name)
	fmt.Fprintf(&b, "Two buyers want the last unit. On every database they take these %d steps in the same order:\n\n", same)
	for i, s := range all[0].Steps[:same] {
		fmt.Fprintf(&b, "%d. Buyer %d: `%s`\n", i+1, s.Buyer, sent(s))
	}
	fmt.Fprintf(&b, "\nFrom step %d on, the database decides:\n\n| database | buyer %d continues | answers | verdict |\n|---|---|---|---|\n", same+1, all[0].Steps[same].Buyer)
	var rows, names []string // databases with the same row share it
	for _, p := range all {
		var rest []string
		for _, s := range p.Steps[same:] {
			rest = append(rest, strings.ReplaceAll(s.Line(), "|", `\|`))
		}
		word := string(p.Verdict)
		if p.Broken() {
			word = "**" + word + "**"
		}
		row := fmt.Sprintf("%s | %s | %s", strings.Join(rest, "; "), p.Answers(), word)
		if i := slices.Index(rows, row); i >= 0 {
			names[i] += "; " + p.level.Title
			continue
		}
		rows, names = append(rows, row), append(names, p.level.Title)
	}
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", names[i], row)
	}
	b.WriteString("\nReplay each schedule:\n\n")
	for _, p := range all {
		fmt.Fprintf(&b, "    ./%s\n", explore.Replay(entry.Name, p.flags(), p.Witness))
	}
	return b.String()
}

// sharedSteps returns the number of first steps with the same commands in all runs, before any rejected
// command.
func sharedSteps(all []played) int {
	for i, s := range all[0].Steps {
		for _, p := range all {
			if i >= len(p.Steps) || p.Steps[i].Buyer != s.Buyer || sent(p.Steps[i]) != sent(s) || strings.Contains(p.Steps[i].Result, "error") {
				return i
			}
		}
	}
	return len(all[0].Steps)
}

type played struct {
	*onLevel
	*explore.Witness
}

// longest is the maximum number of steps until the last buyer has its answer.
const longest = 30

// play runs the schedule. The last buyer gets as many steps as it needs, since it continues differently
// if the database rejects its write.
func play(t *testing.T, entry lockstrategy.Entry, on *onLevel, s explore.Schedule) played {
	t.Helper()
	x := exploretest.Open(t, exploretest.Config(on.engine, entry))
	last := s.Tokens[len(s.Tokens)-1]
	tokens := s.Tokens
	for len(tokens) > 0 && tokens[len(tokens)-1] == last {
		tokens = tokens[:len(tokens)-1]
	}
	tokens = tokens[:len(tokens):len(tokens)]
	var err error
	for range longest {
		tokens = append(tokens, last)
		s.Tokens = tokens
		var w *explore.Witness
		if w, err = x.Replay(t.Context(), s.String()); err == nil {
			return played{on, w}
		}
		if !errors.Is(err, schedule.ErrDivergence) {
			break
		}
	}
	t.Fatalf("on %s: %v", on.level.Title, err)
	return played{}
}

// sent returns the command of a step, shortened and without its result.
func sent(s explore.Step) string {
	command, _, _ := strings.Cut(s.Line(), " -> ")
	return command
}
