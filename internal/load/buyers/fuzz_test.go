package buyers

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/purchase"
)

// FuzzAnswer: every answer of a service has one of the outcomes, and a sale names a record.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"id":1,"amount":2}`), int64(2), "7-9")
	f.Add(200, []byte(`{"id":-1}`), int64(0), "9-7")
	f.Add(409, []byte(`{"outcome":"sold_out","detail":"x"}`), int64(1), "-")
	f.Add(503, []byte(`{"outcome":"sold"}`), int64(9223372036854775807), "9223372036854775807-9223372036854775807")
	f.Add(0, []byte(nil), int64(-1), "")
	f.Fuzz(func(t *testing.T, status int, body []byte, units int64, span string) {
		a := AnswerOf(Exchange{Status: status, Body: body, Header: http.Header{purchase.SpanHeader: {span}}}, Buyer{Units: units})
		if !slices.Contains(purchase.Outcomes(), a.Outcome) {
			t.Errorf("outcome %q", a.Outcome)
		}
		if sold := a.Outcome == purchase.Sold; sold && (status != http.StatusOK || a.ID <= 0) || sold != (a.Receipt != "") {
			t.Errorf("%d %q: %+v", status, body, a)
		}
		if a.Inside[0].After(a.Inside[1]) || a.SaysWhen() && !strings.Contains(span, "-") {
			t.Errorf("%q: inside %v", span, a.Inside)
		}
	})
}
