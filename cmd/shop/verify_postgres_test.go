package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/dialect"
	"github.com/oversell/oversell/internal/localserver/localservertest"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/verdict"
	"github.com/oversell/oversell/internal/verify"
)

// TestVerifyPostgres: what only PostgreSQL is struck by. A replica that each COMMIT has
// waited for has every acknowledged sale, and one that lacks the last commits does not:
// so the first of these cells would have shown a loss.
func TestVerifyPostgres(t *testing.T) {
	localservertest.SkipShort(t)
	t.Parallel()
	want := map[promise.Condition]verdict.Verdict{
		promise.DBFailover: verdict.Holds, promise.DBFailoverAsync: verdict.Lost, promise.PoolerRestart: verdict.Holds,
	}
	code, stdout, stderr := exitCode(t, "verify", "--engine", "local", "--local-db", dialect.Postgres, "--strategy", "conditional",
		"--fault", "db-failover,db-failover-async,pooler-restart", "--json")
	var report verify.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, stderr)
	}
	var void []string
	for _, c := range report.Cells {
		if c.Verdict == verdict.Inconclusive && c.HarnessError == "" {
			void = append(void, fmt.Sprintf("%s: %s", c.Fault, c.Evidence))
			continue
		}
		if c.Verdict != want[c.Fault] || !c.OK {
			t.Errorf("%s: %s, want %s: %s", c.Fault, c.Verdict, want[c.Fault], c.Evidence)
		}
		if c.Fault == promise.DBFailoverAsync && c.Lost == 0 {
			t.Errorf("no sale is lost: %s", c.Evidence)
		}
	}
	switch {
	case len(void) > 0 && code == exitInconclusive:
		t.Skipf("the machine was too slow to show anything of %q", void)
	case len(report.Cells) != len(want) || code != 0:
		t.Errorf("exit %d, %d cells: %s", code, len(report.Cells), stderr)
	}
}

// TestVerifyOtherDatabase: what is not struck on this database is left out, and said.
func TestVerifyOtherDatabase(t *testing.T) {
	localservertest.SkipShort(t)
	t.Parallel()
	code, _, stderr := exitCode(t, "verify", "--engine", "local", "--strategy", "conditional", "--fault", "db-failover")
	if code != exitHarness || !strings.Contains(stderr, "db-failover: for --local-db postgres") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
