package fault

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// TestTimesOf: a fault that occupies several lock servers for seconds gets a longer lease, and only where
// the strategy's server is several.
func TestTimesOf(t *testing.T) {
	times := Times{Wait: 7 * time.Second, Lease: 2 * time.Second}
	for _, c := range []struct {
		fault Fault
		redis string
		want  Times
	}{
		{crash(), topology.Single, times},
		{leaderKill(), topology.Single, Times{Wait: electionLease + 15*time.Second, Lease: electionLease, Ensembles: true}},
		{redisFailover(), topology.Single, times},
		{redisFailover(), topology.Sentinel, Times{Wait: longLease + 15*time.Second, Lease: longLease}},
	} {
		if got := times.TimesOf(c.fault, c.redis); got != c.want {
			t.Errorf("%s on %s: %+v, want %+v", c.fault.Name, c.redis, got, c.want)
		}
	}
}

// TestAllowed: if the holder lives, no buyer waits for a lease to expire, so the allowed time is
// shorter than a lease.
func TestAllowed(t *testing.T) {
	times := Times{Wait: 7 * time.Second, Lease: 2 * time.Second}
	redis, database := []lockstrategy.Need{lockstrategy.NeedsRedis}, []lockstrategy.Need{lockstrategy.NeedsNamedLocks}
	for _, c := range []struct {
		name  string
		fault Fault
		needs []lockstrategy.Need
		want  time.Duration
	}{
		{"a holder that is gone, a lock elsewhere", crash(), redis, 4 * time.Second},
		{"a holder that is gone, a lock of the database", crash(), database, 2 * time.Second},
		{"a holder that lives", clientGone(), redis, 1500 * time.Millisecond},
		{"a holder that lives, slow servers", latency(), redis, 1500 * time.Millisecond},
	} {
		if got := times.Allowed(c.fault, c.needs); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
