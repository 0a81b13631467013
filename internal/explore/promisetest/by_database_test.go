package promisetest_test

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

//go:generate go test -run TestByDatabase -timeout 60m -update-witnesses .

var updateWitnesses = flag.Bool("update-witnesses", false, "write docs/witnesses/by-database")

const (
	witnesses  = "../../../docs/witnesses"
	byDatabase = witnesses + "/by-database"

	updateByDatabase = "go test ./internal/explore/promisetest -run TestByDatabase -update-witnesses"
)

// TestByDatabase covers strategies that break by order alone on one database and hold on another.
// docs/witnesses/by-database shows the same schedule on each database, and each run ends as
// promised.
//
//	go test ./internal/explore/promisetest -run TestByDatabase -update-witnesses
func TestByDatabase(t *testing.T) {
	localservertest.SkipShort(t)
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
			want := sideBySide(t, entry, on)
			if *updateWitnesses {
				if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(file)
			if err != nil || string(got) != want {
				t.Errorf("%s is not what the databases do now (%v): run %s", file, err, updateByDatabase)
			}
		})
	}
	files, err := filepath.Glob(byDatabase + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !shown[file] {
			t.Errorf("%s is of no strategy that differs by database", file)
		}
	}
}

// onLevel is an engine at one of dialect.Levels.
type onLevel struct {
	level  dialect.Level
	engine *engine.Engine
}

// flags returns the flags of shop explore for the same engine.
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// replayLine finds the schedule in a file of docs/witnesses.
var replayLine = regexp.MustCompile(`--replay (v1:[^\s` + "`" + `]+)`)

// sideBySide returns the page of a strategy: the databases on which the schedule of its witness
// breaks, next to those on which it does not.
func sideBySide(t *testing.T, entry lockstrategy.Entry, on []*onLevel) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(witnesses, entry.Name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	line := replayLine.FindSubmatch(text)
	if line == nil {
		t.Fatalf("docs/witnesses/%s.md has no replay line", entry.Name)
	}
	broken, err := explore.ParseSchedule(string(line[1]))
	if err != nil {
		t.Fatal(err)
	}
	var breaks, holds []played
	for _, l := range on {
		want, explored := entry.Explored(promise.Explore, l.level.Name)
		if !explored || want == "" {
			continue
		}
		p := play(t, entry, l, broken)
		if p.Verdict != want {
			t.Errorf("on %s: %s (%s), promised is %s", l.level.Title, p.Verdict, p.Schedule, want)
		}
		if p.Broken() {
			breaks = append(breaks, p)
		} else {
			holds = append(holds, p)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- written by %s -->\n# %s, by database\n\n", updateByDatabase, entry.Name)
	b.WriteString("The same two buyers take the same turns on each database, as far as the order that breaks the strategy goes.\n" +
		"Where that order does not break it, the last buyer goes on to the end.\n")
	for _, p := range holds {
		writeBeside(&b, entry.Name, append(breaks[:len(breaks):len(breaks)], p))
	}
	return b.String()
}

// played is a run of a schedule on a database.
type played struct {
	*onLevel
	*explore.Witness
}

// longest is the maximum number of steps until the last buyer has its answer.
const longest = 30

// play runs the schedule. The last buyer has as many steps as it needs: if the database rejects a
// write, the buyer continues differently from there.
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

// writeBeside writes a table with a column for each database.
func writeBeside(b *strings.Builder, strategy string, all []played) {
	last := all[len(all)-1]
	fmt.Fprintf(b, "\n## %s\n\n| step |", last.level.Title)
	steps := 0
	for _, p := range all {
		fmt.Fprintf(b, " %s: **%s** |", p.level.Title, p.Verdict)
		steps = max(steps, len(p.Steps))
	}
	b.WriteString("\n|---:|" + strings.Repeat("---|", len(all)) + "\n")
	for i := range steps {
		fmt.Fprintf(b, "| %d |", i+1)
		for _, p := range all {
			b.WriteString(" ")
			if i < len(p.Steps) {
				s := p.Steps[i]
				fmt.Fprintf(b, "buyer %d: %s ", s.Buyer, strings.ReplaceAll(s.Line(), "|", `\|`))
			}
			b.WriteString("|")
		}
		b.WriteString("\n")
	}
	b.WriteString("| |")
	for _, p := range all {
		fmt.Fprintf(b, " %s |", p.Answers())
	}
	b.WriteString("\n\n")
	for _, p := range all {
		fmt.Fprintf(b, "    %s\n", explore.Replay(strategy, p.flags(), p.Witness))
	}
}
