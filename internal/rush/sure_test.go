package rush

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/verdict"
)

// keeping is a service whose lock is kept by the first buyer who finds it sold out, until
// the next restock: the others wait, and give up. It does so for as many crowds.
type keeping struct {
	shelf
	crowds atomic.Int64
	kept   atomic.Bool
	wait   time.Duration
}

func (k *keeping) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPut:
		k.kept.Store(false)
		k.crowds.Add(-1)
	case r.URL.Path == "/product/buy" && k.kept.Load():
		time.Sleep(k.wait)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	k.shelf.ServeHTTP(w, r)
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.URL.Path == "/product/buy" && k.left == 0 && k.crowds.Load() >= 0 {
		k.kept.Store(true)
	}
}

// TestStalled: a lock that is kept at an empty shelf is stalled if it is kept twice in a
// row. Kept once, it shows nothing; and the next crowd that nobody keeps waiting holds.
func TestStalled(t *testing.T) {
	for _, c := range []struct {
		name   string
		crowds int64
		want   verdict.Verdict
		says   string
	}{
		{"kept each time", 5, verdict.Stalled, "nobody was served for 1."},
		{"kept once", 1, verdict.Inconclusive, "stalled once, and a second crowd was not"},
		{"never kept", 0, verdict.Holds, "100 units sold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := &keeping{wait: 1200 * time.Millisecond} // above what a machine may stand still
			k.crowds.Store(c.crowds)
			server := httptest.NewServer(k)
			defer server.Close()
			target := Target{BaseURL: server.URL, Client: server.Client()}
			r, err := Run(t.Context(), Config{
				BaseURLs: []string{server.URL}, Shelf: target, Auditor: target, Strategy: "mine", Product: "apple",
				Stock: 100, Buyers: 200, Timeout: crowdAt().Timeout, Progress: func(int) {},
			})
			if err != nil || r.Verdict != c.want || !strings.Contains(r.Reason, c.says) {
				t.Errorf("%s (%s), %v; want %s (%s)", r.Verdict, r.Reason, err, c.want, c.says)
			}
		})
	}
}
