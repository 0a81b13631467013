package purchase

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
)

// FuzzReadOrder: readOrder refuses a request, or returns an order that can be recorded.
func FuzzReadOrder(f *testing.F) {
	f.Add("product=apple&amount=2&purchaser=ann&lock=redis", "order-1", "application/json", `{"amount":1,"lock":"none"}`)
	f.Add("amount=-1", "", "text/plain", "x")
	f.Add("purchaser=%00", strings.Repeat("k", 256), "application/json; charset=utf-8", `{"purchaser":"\ud800"}`)
	f.Add("amount=9223372036854775808", "\xff", "", "")
	f.Fuzz(func(t *testing.T, query, key, contentType, body string) {
		r, err := http.NewRequest(http.MethodPost, "http://localhost/product/buy", strings.NewReader(body))
		require.NoError(t, err)
		r.URL = &url.URL{Path: "/product/buy", RawQuery: query}
		r.Header.Set("Content-Type", contentType)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		o, _, _, err := readOrder(r)
		if err != nil {
			return
		}
		expect.NoError(t, o.Check(), o, "was taken")
		if o.IdempotencyKey != key || o.Purchaser == "" {
			t.Errorf("%+v, key %q", o, key)
		}
	})
}
