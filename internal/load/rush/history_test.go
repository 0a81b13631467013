package rush

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
)

// TestHistory: a history that lacks a record, or shows one that the database does not contain, breaks the
// promise. If the history is not answered in time, it proves nothing. A record may be written while the history
// is read.
func TestHistory(t *testing.T) {
	sales := func(ids ...int64) map[int64]audit.Sale {
		all := map[int64]audit.Sale{}
		for _, id := range ids {
			all[id] = audit.Sale{Purchaser: "a", Amount: 1}
		}
		return all
	}
	const one, two = `{"records":[{"id":1}]}`, `{"records":[{"id":1},{"id":2}]}`
	for _, c := range []struct {
		name   string
		status int
		body   string
		before []int64 // records before the history was read
		now    []int64 // records after it
		want   verdict.Verdict
		says   string
	}{
		{"complete", 200, two, []int64{1, 2}, []int64{1, 2}, verdict.Holds, ""},
		{"recorded before its page", 200, two, []int64{1}, []int64{1, 2}, verdict.Holds, ""},
		{"recorded after its page", 200, one, []int64{1}, []int64{1, 2}, verdict.Holds, ""},
		{"one is missing", 200, one, []int64{1, 2}, []int64{1, 2}, verdict.Failed, "shows 1 record, and the database has 2: 1 are missing"},
		{"one is invented", 200, two, []int64{1}, []int64{1}, verdict.Failed, "1 are not in the database"},
		{"500", 500, "", []int64{1}, []int64{1}, verdict.Failed, "cannot be read"},
		{"503", 503, "", []int64{1}, []int64{1}, verdict.Inconclusive, "not read in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			}))
			defer shop.Close()
			config := Config{Shelf: Target{BaseURL: shop.URL}, Auditor: books{sales: sales(c.now...)}}
			r := Result{Verdict: verdict.Holds}
			require.NoError(t, config.readHistory(t.Context(), &r, sales(c.before...)))
			if r.Verdict != c.want || !strings.Contains(r.Reason, c.says) {
				t.Errorf("%s (%s), want %s (%s)", r.Verdict, r.Reason, c.want, c.says)
			}
		})
	}
}
