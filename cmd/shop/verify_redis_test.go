package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web"
)

// TestVerifyRedis: behind sentinels and on a cluster, their own failover breaks a plain lease. It
// does not break a lock that replicas confirm, and a fence holds. Cutting off a primary together
// with the holder breaks the confirmed lock, too.
func TestVerifyRedis(t *testing.T) {
	tier.Soak(t, "starts sentinels and a cluster")
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
				tier.Soak(t, "half a minute")
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
	code, stdout, stderr := exitCode(t, args...)
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
	}
	switch {
	case len(void) > 0 && code == exitInconclusive:
		t.Skipf("the machine was too slow to show anything of %q", void)
	case len(report.Cells) != len(want) || code != 0:
		t.Errorf("exit %d, %d cells: %s", code, len(report.Cells), stderr)
	}
	return report.Cells
}

// TestRedisFlags: contradictory flags are refused in one line before anything is started.
func TestRedisFlags(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"rush --local-redis cluster":                         "--local-redis requires --engine local",
		"verify --engine local --redis-wait 1":               "--redis-wait requires --local-redis sentinel or cluster",
		"rush --redis-wait 1":                                "--redis-wait 1 needs a Redis with replicas; add --engine local --local-redis sentinel (or cluster)",
		"serve --redis-wait 1":                               "--redis-wait 1 needs a Redis with replicas",
		"rush --engine local --redis-wait 1":                 "--redis-wait 1 needs a Redis with replicas",
		"rush --redis-wait -1":                               "--redis-wait must be between 0 and 16 (got -1)",
		"verify --local-redis cluster":                       "--local-redis requires --engine local",
		"explore redis --engine embedded --local-redis ring": "--local-redis",
	} {
		code, _, stderr := exitCode(t, strings.Fields(args)...)
		if code != exitHarness || !strings.Contains(stderr, says) || strings.Count(strings.TrimSpace(stderr), "\n") > 1 {
			t.Errorf("%s: exit %d, %q, want %q", args, code, stderr, says)
		}
	}
}

// TestVerifyElsewhere: faults of other topologies of Redis and of other databases are skipped, and the
// output says so.
func TestVerifyElsewhere(t *testing.T) {
	tier.Test(t, "needs servers")
	t.Parallel()
	code, _, stderr := exitCode(t, "verify", "--engine", "local", "--strategy", "redis", "--fault", "slot-migration,primary-partition,db-failover")
	if code != exitHarness || !strings.Contains(stderr, "slot-migration: run with --local-redis cluster") || !strings.Contains(stderr, "primary-partition: run with --local-redis sentinel") || !strings.Contains(stderr, "db-failover: run with --local-db postgres") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestWarnOfReplicas: a lock that waits for more replicas than there are causes a warning.
func TestWarnOfReplicas(t *testing.T) {
	t.Parallel()
	e := enginetest.Redis(t, topology.Sentinel) // a primary and two replicas
	for wait, want := range map[int]string{0: "", 2: "", 3: "a primary of Redis has 2 replicas now; until it has 3, buyers of redis, "} {
		if got := strings.Join(web.Warnings(t.Context(), e, wait), "; "); got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("--redis-wait %d: %q, want %q", wait, got, want)
		}
	}
}
