package verify_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// TestVerifyRedis: a failover by sentinels or by a cluster breaks a plain lease. It breaks neither a lock that
// replicas confirm nor a fence. Cutting off a primary together with the holder breaks the confirmed lock, too.
func TestVerifyRedis(t *testing.T) {
	tier.Soak(t, "starts sentinels and a Redis Cluster")
	t.Parallel()
	for _, c := range []struct {
		name, flags string
		want        map[promise.Condition]verdict.Verdict
		soak        bool
	}{
		{"sentinel", "--local-redis sentinel --strategy redis", map[promise.Condition]verdict.Verdict{
			promise.RedisFailover: verdict.Oversold, promise.TwoProcesses: verdict.Holds,
		}, false},
		{"cluster", "--local-redis cluster --strategy redis", map[promise.Condition]verdict.Verdict{
			promise.RedisFailover: verdict.Oversold, promise.SlotMigration: verdict.Holds,
		}, false},
		{"sentinel, fenced", "--local-redis sentinel --strategy fenced", map[promise.Condition]verdict.Verdict{
			promise.RedisFailover: verdict.Holds, promise.PrimaryPartition: verdict.Holds,
		}, true},
		{"sentinel, WAIT", "--local-redis sentinel --strategy redisson --redis-wait 1", map[promise.Condition]verdict.Verdict{
			promise.RedisFailover: verdict.Holds, promise.PrimaryPartition: verdict.Oversold,
		}, true},
		{"cluster, WAIT", "--local-redis cluster --strategy redis --redis-wait 1", map[promise.Condition]verdict.Verdict{
			promise.RedisFailover: verdict.Holds, promise.ClusterDown: verdict.Holds,
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.soak {
				tier.Soak(t, "takes half a minute")
			}
			t.Parallel()
			verifies(t, c.flags, c.want)
		})
	}
}

// verifies runs shop verify under these conditions, compares each verdict, and returns the cells.
func verifies(t *testing.T, flags string, want map[promise.Condition]verdict.Verdict) []verify.Cell {
	t.Helper()
	var faults []string
	for fault := range want {
		faults = append(faults, string(fault))
	}
	args := append([]string{"verify", "--engine", "local", "--json", "--fault", strings.Join(faults, ",")}, strings.Fields(flags)...)
	code, stdout, stderr := shoptest.RunRaced(t, args...)
	var report verify.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &report), "exit", code, stderr)
	var void []string
	for _, c := range report.Cells {
		if c.Verdict == verdict.Inconclusive && c.HarnessError == "" {
			void = append(void, fmt.Sprintf("%s: %s", c.Fault, c.Evidence))
			continue
		}
		if c.Verdict != want[c.Fault] || !c.OK {
			t.Errorf("%s: %s, want %s: %s", c.Fault, c.Verdict, want[c.Fault], c.Evidence)
		}
	}
	switch {
	case len(void) > 0 && code == shoptest.Inconclusive:
		t.Skipf("the machine was too slow to show anything of %q", void)
	case len(report.Cells) != len(want) || code != 0:
		t.Errorf("exit %d, %d cells: %s", code, len(report.Cells), stderr)
	}
	return report.Cells
}

// TestVerifyElsewhere: faults of other topologies of Redis and of other databases are skipped, and the
// output says so.
func TestVerifyElsewhere(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	code, _, stderr := shoptest.RunRaced(t, "verify", "--engine", "local", "--strategy", "redis", "--fault", "slot-migration,primary-partition,db-failover")
	if code != shoptest.Harness || !strings.Contains(stderr, "slot-migration: run with --local-redis cluster") || !strings.Contains(stderr, "primary-partition: run with --local-redis sentinel") || !strings.Contains(stderr, "db-failover: run with --local-db postgres") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestVerifyPostgres covers the faults of PostgreSQL only. A synchronous replica has every acknowledged sale. A
// replica without the last commits lacks sales, which shows that the test detects a loss.
func TestVerifyPostgres(t *testing.T) {
	tier.Soak(t, "starts a PostgreSQL replica and a pooler")
	t.Parallel()
	cells := verifies(t, "--local-db postgres --strategy conditional", map[promise.Condition]verdict.Verdict{
		promise.DBFailover: verdict.Holds, promise.DBFailoverAsync: verdict.Lost, promise.PoolerRestart: verdict.Holds,
	})
	for _, c := range cells {
		if c.Fault == promise.DBFailoverAsync && c.Verdict == verdict.Lost && c.Lost == 0 {
			t.Errorf("no sale is lost: %s", c.Evidence)
		}
	}
}

// TestSixNodes: six Redlock nodes need four, so they survive two failures, as five nodes do.
func TestSixNodes(t *testing.T) {
	tier.Soak(t, "starts five and then six Redlock nodes")
	for _, nodes := range []string{"5", "6"} {
		cells := verifies(t, "--strategy redlock --redlock-nodes "+nodes, map[promise.Condition]verdict.Verdict{promise.NodesDown: verdict.Holds})
		two, three := "8 of 8 buyers were sold a unit with 2 of "+nodes+" nodes killed", "with 3 killed the holder was answered failed, and 0 of 3 others were sold a unit"
		if seen := cells[0].Evidence; !strings.Contains(seen, two) || !strings.Contains(seen, three) {
			t.Errorf("%s nodes: %s", nodes, seen)
		}
	}
}

// TestOutage: after a crash, a product is blocked until the lease ends.
func TestOutage(t *testing.T) {
	tier.Soak(t, "waits until a lease of 5 s ends")
	const lease = 5000 // ms
	cells := verifies(t, "--strategy redis --lease 5s", map[promise.Condition]verdict.Verdict{promise.Crash: verdict.Holds})
	if ms := cells[0].NextSaleMS; ms == nil || *ms < lease/2 || *ms > lease+2000 {
		t.Errorf("the next sale came after %v ms, with a lease of %d ms", ms, lease)
	}
	expect.Equal(t, cells[0].Replay, "shop verify --engine local --strategy redis --fault crash --lease 5s", "replay")
}

// TestVerifyGalera: every fault of a node takes effect. The strategy redis sells twice if its lease ends inside
// a COMMIT. The strategy conditional does not, since the database decides.
func TestVerifyGalera(t *testing.T) {
	t.Parallel()
	tier.Test(t, "needs servers")
	tier.Soak(t, "takes three minutes")
	code, stdout, stderr := shoptest.RunRaced(t, "verify", "--engine", "local", "--local-db", dialect.Galera, "--strategy", "conditional,redis",
		"--fault", "db-kill,db-node-kill,db-node-freeze,db-node-cut,db-node-rejoin,db-cluster-restart", "--json")
	var report verify.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &report), "exit", code, stderr)
	expect.Equal(t, len(report.Cells), 12, "cells")
	for _, c := range report.Cells {
		if !c.OK {
			t.Errorf("%s", c.Line())
		}
		if c.Fault == promise.DBNodeKill && c.Strategy == "conditional" && (c.Verdict != verdict.Holds || c.Acknowledged == 0 && c.Audited.Records == 0) {
			t.Errorf("%s: %s", c.Line(), c.Evidence)
		}
	}
}
