package main

import (
	"testing"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/tier"
)

// TestVerifyPostgres covers the faults of PostgreSQL only. A synchronous replica has every
// acknowledged sale, and a replica without the last commits does not. The latter shows that the
// first cell would have detected a loss.
func TestVerifyPostgres(t *testing.T) {
	tier.Soak(t, "a standby and a pooler for three cells")
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
