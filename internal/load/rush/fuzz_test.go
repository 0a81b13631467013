package rush

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oversell/oversell/internal/purchase"
)

// FuzzAnswer: whatever a service answers is one of the outcomes, and a sale only where it
// names a record.
func FuzzAnswer(f *testing.F) {
	f.Add(uint16(200), []byte(`{"id":1,"amount":2}`), "http://a/product/buy?amount=2&purchaser=ann", "7-9")
	f.Add(uint16(200), []byte(`{"id":-1}`), "%zz", "9-7")
	f.Add(uint16(409), []byte(`{"outcome":"sold_out","detail":"x"}`), "", "-")
	f.Add(uint16(503), []byte(`{"outcome":"sold"}`), "http://a?amount=9223372036854775808", "9223372036854775807-9223372036854775807")
	f.Add(uint16(0), []byte(nil), "", "")
	f.Fuzz(func(t *testing.T, status uint16, body []byte, url, span string) {
		a := answerOf(&vegeta.Result{Code: status, Body: body, URL: url, Headers: http.Header{purchase.SpanHeader: {span}}})
		if !slices.Contains(purchase.Outcomes(), a.Outcome) {
			t.Errorf("outcome %q", a.Outcome)
		}
		if sold := a.Outcome == purchase.Sold; sold && (status != http.StatusOK || a.ID <= 0) || sold != (a.Receipt != "") {
			t.Errorf("%d %q: %+v", status, body, a)
		}
		if a.Inside[0].After(a.Inside[1]) || a.saysWhen() && !strings.Contains(span, "-") {
			t.Errorf("%q: inside %v", span, a.Inside)
		}
	})
}
