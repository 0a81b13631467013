package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
)

// BenchmarkPublish measures the hub's cost for a buy with a locking strategy, without a page.
func BenchmarkPublish(b *testing.B) {
	h := NewHub(exactly)
	h.Publish(history.Event{Kind: history.Restocked, At: time.Now(), Product: "apple", Amount: 1_000_000})
	left := int64(1_000_000)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		left--
		e := history.Event{At: time.Now(), Strategy: "any", Product: "apple", Purchaser: fmt.Sprint("buyer-", n%64), Token: "token"}
		for _, kind := range []history.Kind{history.Call, history.Waiting, history.Acquired, history.Released, history.Return} {
			e.Kind = kind
			if kind == history.Return {
				e.Outcome, e.Amount, e.Left = "sold", 1, &left
			}
			h.Publish(e)
		}
	}
}
