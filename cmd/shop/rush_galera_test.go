package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/tier"
)

// TestRushGalera has two processes at two nodes of a cluster. Strategies that rely on the database
// hold, and they retry orders that the other node has rejected. A plain transaction oversells.
func TestRushGalera(t *testing.T) {
	tier.Soak(t, "starts a cluster of three databases")
	t.Parallel()
	code, stdout, stderr := exitCode(t, "rush", "--engine", "local", "--local-db", dialect.Galera, "--processes", "2",
		"--strategy", "transaction,for-update,fenced,redis-lua", "--expect")
	if code == exitInconclusive {
		t.Skip("the machine was too slow to show anything: " + stderr)
	}
	if code != 0 {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	for name, verdict := range map[string]string{"transaction": "oversold", "for-update": "holds", "fenced": "holds", "redis-lua": "holds"} {
		if row := rowOf(stdout, name); !strings.HasSuffix(row, verdict) {
			t.Errorf("%s: %q, want %s", name, row, verdict)
		}
	}
}

// TestVerifyGalera: every fault of a node takes effect. A lease that ends inside a COMMIT sells
// twice, while the database's own decision does not.
func TestVerifyGalera(t *testing.T) {
	t.Parallel()
	tier.Test(t, "needs servers")
	tier.Soak(t, "takes three minutes")
	code, stdout, stderr := exitCode(t, "verify", "--engine", "local", "--local-db", dialect.Galera, "--strategy", "conditional,redis",
		"--fault", "db-kill,db-node-kill,db-node-freeze,db-node-cut,db-node-rejoin,db-cluster-restart", "--json")
	var report verify.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, stderr)
	}
	if len(report.Cells) != 12 {
		t.Errorf("%d cells, want 12", len(report.Cells))
	}
	for _, c := range report.Cells {
		if !c.OK {
			t.Errorf("%s", c.Line())
		}
		if c.Fault == promise.DBNodeKill && c.Strategy == "conditional" && (c.Verdict != verdict.Holds || c.Acknowledged == 0 && c.Audited.Records == 0) {
			t.Errorf("%s: %s", c.Line(), c.Evidence)
		}
	}
}
