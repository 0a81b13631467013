package buyers

import (
	"errors"
	"testing"

	"github.com/oversell/oversell/internal/purchase"
)

func TestReadSpan(t *testing.T) {
	for header, want := range map[string]bool{"": false, "7": false, "x-9": false, "9-7": false, "7-9": true} {
		if got := readSpan(header); got[0].IsZero() == want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

func TestReadAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		units  int64
		status int
		body   string
		want   purchase.Outcome
	}{
		{"sold", 1, 200, `{"id":1,"purchaser":"a","amount":1}`, purchase.Sold},
		{"two units for one", 0, 200, `{"id":1,"purchaser":"a","amount":2}`, purchase.Failed},
		{"two units for two", 2, 200, `{"id":1,"amount":2}`, purchase.Sold},
		{"one unit for two", 2, 200, `{"id":1,"amount":1}`, purchase.Failed},
		{"an empty receipt", 1, 200, `{}`, purchase.Failed},
		{"200 around something else", 1, 200, `thanks`, purchase.Failed},
		{"the problem's word wins", 1, 409, `{"outcome":"lock_lost"}`, purchase.LockLost},
		{"a word that is none", 1, 409, `{"outcome":"magic"}`, purchase.SoldOut},
		{"status alone, sold out", 1, 409, ``, purchase.SoldOut},
		{"status alone, busy", 1, 429, ``, purchase.Busy},
		{"status alone, unknown", 1, 504, ``, purchase.Unknown},
		{"bad request", 1, 400, ``, purchase.Failed},
	} {
		if got := AnswerOf(Exchange{Status: c.status, Body: []byte(c.body)}, Buyer{Units: c.units}); got.Outcome != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.Outcome, c.want)
		}
	}
	if got := AnswerOf(Exchange{Err: errors.New("broken pipe")}, Buyer{}); got.Outcome != purchase.Unknown {
		t.Errorf("no answer: %s, want unknown", got.Outcome)
	}
}
