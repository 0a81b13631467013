package web

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestAdmission: while buyers wait for a locked row, new buyers are told at once that the shop is
// busy, and when to come back. Nothing is recorded for refused buyers.
func TestAdmission(t *testing.T) {
	t.Parallel()
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		if e.Name == engine.Embedded {
			t.Skip("only the shop holds a lock there")
		}
		base := startServe(t, e.URLs, waitFor(time.Minute))
		webtest.Restock(t, base, "apple", 10_000)
		hold := e.DB.Begin()
		if err := hold.Exec("SELECT id FROM product WHERE name = 'apple' FOR UPDATE").Error; err != nil {
			t.Fatal(err)
		}
		var came atomic.Int64
		buy := func() response {
			// Each has another name: the same buyer would get a delayed answer.
			return webtest.Call(t, http.MethodPost, fmt.Sprintf("%s/product/buy?lock=for-update&purchaser=ann-%d", base, came.Add(1)), "", nil)
		}
		var all sync.WaitGroup
		var sold, refused atomic.Int64
		come := func() {
			all.Go(func() {
				switch r := buy(); r.Status {
				case http.StatusOK:
					sold.Add(1)
				case http.StatusServiceUnavailable:
					refused.Add(1)
				default:
					t.Errorf("%d %s", r.Status, r.Body)
				}
			})
		}
		for range 256 {
			come()
		}
		webtest.Eventually(t, "the crowd stays, and the next one is refused", func() bool {
			come()
			return refused.Load() > 0
		})
		for range 20 {
			r := buy()
			webtest.WantProblem(t, r, http.StatusServiceUnavailable, "busy")
			if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 30 {
				t.Errorf("Retry-After %q", r.Header.Get("Retry-After"))
			}
			refused.Add(1)
		}
		if err := hold.Rollback().Error; err != nil {
			t.Fatal(err)
		}
		all.Wait()
		if sold.Load() < 256 {
			t.Errorf("%d sales, want one for each admitted buyer", sold.Load())
		}
		if got := webtest.Audit(t, base, "apple"); int64(got.Records) != sold.Load() || got.Drift != 0 {
			t.Errorf("%d records, drift %d; want %d, and none for the %d refused buyers", got.Records, got.Drift, sold.Load(), refused.Load())
		}
	})
}
