package fault

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy"
)

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
