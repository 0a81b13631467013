package rush

import (
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/purchase"
)

// TestMaxOverlap: what the shop says of its buys goes before what their buyers
// saw, where it says it of every sale.
func TestMaxOverlap(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	// sent is a buy that was under way for its buyer all the time.
	sent := func(outcome purchase.Outcome, inside ...time.Time) Answer {
		a := Answer{Answer: audit.Answer{Start: at(0), End: at(9), Outcome: outcome}}
		copy(a.Inside[:], inside)
		return a
	}
	for _, c := range []struct {
		name    string
		answers []Answer
		want    int
	}{
		{"none", nil, 0},
		{"nobody says", []Answer{sent(purchase.Sold), sent(purchase.SoldOut)}, 2},
		{"sent at once, served one after the other", []Answer{
			sent(purchase.Sold, at(1), at(3)), sent(purchase.SoldOut, at(4), at(6)),
		}, 1},
		{"inside at once, and one turned away at the door", []Answer{
			sent(purchase.Sold, at(1), at(5)), sent(purchase.SoldOut, at(4), at(6)), sent(purchase.Busy),
		}, 2},
		{"a sale that does not say", []Answer{sent(purchase.SoldOut, at(1), at(3)), sent(purchase.Sold)}, 2},
	} {
		if got := Overlap(c.answers); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

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
		result vegeta.Result
		want   purchase.Outcome
	}{
		{"sold", vegeta.Result{Code: 200, Body: []byte(`{"id":1,"purchaser":"a","amount":1}`)}, purchase.Sold},
		{"two units for one", vegeta.Result{Code: 200, Body: []byte(`{"id":1,"purchaser":"a","amount":2}`)}, purchase.Failed},
		{"two units for two", vegeta.Result{Code: 200, URL: "http://a/product/buy?amount=2", Body: []byte(`{"id":1,"amount":2}`)}, purchase.Sold},
		{"one unit for two", vegeta.Result{Code: 200, URL: "http://a/product/buy?amount=2", Body: []byte(`{"id":1,"amount":1}`)}, purchase.Failed},
		{"an empty receipt", vegeta.Result{Code: 200, Body: []byte(`{}`)}, purchase.Failed},
		{"200 around something else", vegeta.Result{Code: 200, Body: []byte(`thanks`)}, purchase.Failed},
		{"the problem's word wins", vegeta.Result{Code: 409, Body: []byte(`{"outcome":"lock_lost"}`)}, purchase.LockLost},
		{"a word that is none", vegeta.Result{Code: 409, Body: []byte(`{"outcome":"magic"}`)}, purchase.SoldOut},
		{"status alone, sold out", vegeta.Result{Code: 409}, purchase.SoldOut},
		{"status alone, busy", vegeta.Result{Code: 429}, purchase.Busy},
		{"status alone, unknown", vegeta.Result{Code: 504}, purchase.Unknown},
		{"bad request", vegeta.Result{Code: 400}, purchase.Failed},
		{"no answer", vegeta.Result{Error: "broken pipe"}, purchase.Unknown},
	} {
		if got := answerOf(&c.result); got.Outcome != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.Outcome, c.want)
		}
	}
}

// TestInSum: a service without a history is judged by what the sums prove.
func TestInSum(t *testing.T) {
	var answers []Answer
	for _, outcome := range []purchase.Outcome{purchase.Sold, purchase.Sold, purchase.Unknown, purchase.SoldOut} {
		answers = append(answers, Answer{Answer: audit.Answer{Outcome: outcome}})
	}
	for records, want := range map[int64][2]int64{1: {1, 0}, 2: {0, 0}, 3: {0, 0}, 5: {0, 2}} {
		lost, untold := inSum(Answers(answers), audit.Report{Records: records})
		if lost != want[0] || untold != want[1] {
			t.Errorf("%d records: lost %d, untold %d; want %v", records, lost, untold, want)
		}
	}
}
