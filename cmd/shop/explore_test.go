package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/require"
)

func exploreCLI(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, append([]string{"explore"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestExploreInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, stderr := exploreCLI(ctx, "none"); code != exitInterrupted {
		t.Errorf("exit %d, %q; want %d", code, stderr, exitInterrupted)
	}
}

// TestExploreJSON: the report has the JSON members that scripts rely on.
func TestExploreJSON(t *testing.T) {
	_, stdout, _ := exploreCLI(t.Context(), "none", "--json")
	var report map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &report))
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

// TestExploreExit: a violation takes precedence over a search that proved nothing. A released lock
// of another holder is a violation unless the catalogue states it.
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
