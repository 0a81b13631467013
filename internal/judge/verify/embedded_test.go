package verify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestHarnessErrorIsACell: an error of the harness fails only its own cell. An interrupted play is
// not a cell.
func TestHarnessErrorIsACell(t *testing.T) {
	lost := errors.New("the same schedule did not run the same way again")
	sound := Cell{Strategy: "mutex", Fault: promise.Rush, Promise: verdict.Holds, Verdict: verdict.Holds, OK: true}
	var lines []string
	r := &oneByOne{Config: Config{Ended: func(cell Cell, _ Report) { lines = append(lines, cell.Line()) }}}
	for _, wrong := range []error{lost, nil} {
		if failed, err := r.add(t.Context(), time.Now(), sound, wrong); err != nil || failed != (wrong != nil) {
			t.Errorf("failed %t, %v", failed, err)
		}
	}
	if sorted := r.report.Sort(); len(r.report.Cells) != 2 || len(sorted.Failed) != 1 {
		t.Errorf("%d cells, %d failed; want 2 and 1", len(r.report.Cells), len(sorted.Failed))
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "! harness error mutex under rush") {
		t.Errorf("lines %q", lines)
	}
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	r = &oneByOne{}
	if failed, err := r.add(interrupted, time.Now(), sound, lost); failed || !errors.Is(err, lost) || len(r.report.Cells) > 0 {
		t.Errorf("interrupted: failed %t, %v, %d cells", failed, err, len(r.report.Cells))
	}
}

// TestExplorerLeftOut: the report says why the explorer was left out only if its cells were asked for.
func TestExplorerLeftOut(t *testing.T) {
	for f, want := range map[promise.Condition]int{promise.Pause: 0, promise.Explore: 1} {
		r := Config{Faults: []promise.Condition{f}}.start(engine.Local)
		if err := r.explorations(t.Context(), engine.Config{Name: engine.Local, LocalRedis: topology.Sentinel}); err != nil || len(r.report.LeftOut) != want {
			t.Errorf("%s: left out %q, %v; want %d", f, r.report.LeftOut, err, want)
		}
	}
}
