package rush

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/tier"
)

// keeping is a service in which the first buyer that hears "sold out" keeps the lock until the next
// restock. The others wait and give up. It does so for the given number of bursts.
type keeping struct {
	market
	crowds int64
	wait   time.Duration

	door sync.Mutex
	kept bool
}

func (k *keeping) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.door.Lock()
	buy := r.URL.Path == "/product/buy"
	if buy && k.kept {
		k.door.Unlock()
		time.Sleep(k.wait)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer k.door.Unlock()
	k.market.ServeHTTP(w, r)
	switch {
	case r.Method == http.MethodPut:
		k.kept = false
		k.crowds--
	case buy && k.crowds >= 0 && k.stock["apple"][0] == 0:
		k.kept = true
	}
}

// TestStalled: a lock that is kept after the last sale gives the verdict stalled if two bursts in a row show
// it. If only one does, the result is inconclusive. A later burst without a wait holds.
func TestStalled(t *testing.T) {
	tier.Test(t, "a burst that never ends waits for seconds")
	for _, c := range []struct {
		name   string
		crowds int64
		want   verdict.Verdict
		says   string
	}{
		{"kept each time", 5, verdict.Stalled, "no buyer was served for "},
		{"kept once", 1, verdict.Inconclusive, "stalled once, and holds when it was run again: no buyer was served for "},
		{"never kept", 0, verdict.Holds, "100 units sold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := &keeping{crowds: c.crowds, wait: 4200 * time.Millisecond} // a short stall of the machine must not double it
			config := rushAt(t, k)
			config.Lease = 2 * time.Second // so short that a stall shows even if most of the wait passes without a processor
			r, err := verdict.Confirm(func() (Result, error) { return Run(t.Context(), config) })
			if err != nil || r.Verdict != c.want || !strings.Contains(r.Reason, c.says) {
				t.Errorf("%s (%s), %v; want %s (%s)", r.Verdict, r.Reason, err, c.want, c.says)
			}
		})
	}
}

// TestPlayedAgain: a burst without overlap is played again, and the reason says how often. A burst that
// cannot be repeated is played once.
func TestPlayedAgain(t *testing.T) {
	for isUnique, want := range map[bool]int{false: 3, true: 1} {
		plays := 0
		r, err := verdict.Confirm(func() (Result, error) {
			plays++
			r := Result{Verdict: verdict.Inconclusive, MaxOverlap: 1, Crowd: 2, isUnique: isUnique}
			if plays == 3 {
				r.Verdict, r.MaxOverlap = verdict.Holds, 2
			}
			return r, nil
		})
		says := r.Reason == "; played 3 times, because no two buys were in flight at once"
		if err != nil || plays != want || says == isUnique {
			t.Errorf("unique %t: %d plays, %q, %v; want %d", isUnique, plays, r.Reason, err, want)
		}
	}
}
