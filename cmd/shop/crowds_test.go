package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/teach/live/runs"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// restsOnLease returns a strategy with a lease in Redis that only a pause breaks.
func restsOnLease(t *testing.T) string {
	t.Helper()
	for _, e := range lockstrategy.All() {
		if len(e.Needs) == 1 && e.Needs[0] == lockstrategy.NeedsRedis && e.Leased && e.Promised(promise.TwoProcesses, "sqlite") == verdict.Holds &&
			e.Promised(promise.Pause, "sqlite") == verdict.Oversold && e.Promised(promise.Crash, "sqlite") == verdict.Holds {
			return e.Name
		}
	}
	t.Fatal("no strategy rests on its lease")
	return ""
}

// TestStruckByHand: a fault injected at a moment of the leader's choice is compared with no promise
// and does not make the run inconclusive. The command on the page injects it, too.
func TestStruckByHand(t *testing.T) {
	tier.Test(t, "a burst of which a holder dies")
	t.Parallel()
	// The lease of the dead holder expires well within this wait, even on a slow machine. Otherwise
	// all buyers might give up after a few sales, and slow could not be distinguished from stuck.
	base, name := serveStage(t, "--wait", "1m"), restsOnLease(t)
	run := sendAndStrike(t, base, name, promise.Crash)
	for tries := 1; tries < 5 && run.State == runs.Done && len(run.Strikes) > 0 && run.Strikes[0].Missed != ""; tries++ { // the crowd was faster
		run = sendAndStrike(t, base, name, promise.Crash)
	}
	if run.State != runs.Done || len(run.Strikes) != 1 || run.Strikes[0].Proof == "" || !run.Strikes[0].ByHand {
		t.Fatalf("%s %s: %+v", run.State, run.Error, run.Strikes)
	}
	row, result := run.Rows[0], run.Report.Results[0]
	if row.Promise != "" || result.Verdict == verdict.Inconclusive || !row.Kept || strings.Count(result.Reason, "a fault was injected by hand") != 1 {
		t.Errorf("%+v: %s", row, result.Reason)
	}
	want := fmt.Sprintf("shop rush --strategy %s --stock 400 --buyers 800 --processes 2 --expect --strike crash # crash was injected into %[1]s by hand", name)
	if run.Command != want {
		t.Errorf("command %q, want %q", run.Command, want)
	}
}

// sendAndStrike sends a crowd and injects a fault by hand.
func sendAndStrike(t *testing.T, base, strategy string, f promise.Condition) runs.Run {
	t.Helper()
	r := webtest.Call(t, http.MethodPost, base+"/live/runs", fmt.Sprintf(`{"strategies":[%q],"processes":2,"stock":400,"buyers":800}`, strategy), asJSON)
	id := webtest.Decode[runs.Summary](t, r).ID
	if r := webtest.Call(t, http.MethodPost, base+"/live/strikes", fmt.Sprintf(`{"fault":%q}`, f), asJSON); r.Status != http.StatusAccepted {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	return ended(t, base, id)
}

// TestRushStrikes: each fault of a running rush takes effect and proves it. A strategy with a lease
// breaks under it as promised. If none breaks, one keeps its promise, or shows nothing: a database that
// is killed leaves most of the buyers without an answer. The faults of servers are injected into private
// servers. The live page sends its rushes with the same code.
func TestRushStrikes(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	for _, f := range fault.OfRush() {
		where, database := engine.Local, dialect.MySQL
		if f.TwoProcesses { // a fault of a process
			where, database = engine.Embedded, dialect.SQLite
		}
		breaks := leasedUnder(f.Name, database, verdict.Oversold)
		name := cmp.Or(breaks, leasedUnder(f.Name, database, verdict.Holds))
		t.Run(string(f.Name)+"/"+name, func(t *testing.T) {
			for tries := 1; ; tries++ { // a slow machine proves nothing
				code, stdout, stderr := shoptest.Exit(t, shoptest.Command(t, "rush", "--engine", where, "--strategy", name, "--stock", "200", "--buyers", "400",
					"--processes", "2", "--strike", string(f.Name), "--expect", "--json"))
				var report rush.Report
				if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Results) != 1 {
					t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
				}
				proven := slices.ContainsFunc(report.Strikes, func(s string) bool { return strings.HasPrefix(s, string(f.Name)+" took effect on "+name+" ") })
				switch {
				case proven && (code == 0 || code == exitInconclusive && breaks == ""):
					return
				case code != exitInconclusive || tries == 3:
					t.Fatalf("exit %d, proven %t: %s%s", code, proven, stdout, stderr)
				}
			}
		})
	}
}
