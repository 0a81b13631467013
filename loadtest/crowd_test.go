package loadtest

import (
	"context"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/purchase"
)

func TestMaxOverlap(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	for _, c := range []struct {
		name    string
		answers []answer
		want    int
	}{
		{"none", nil, 0},
		{"one", []answer{{start: at(0), end: at(9), outcome: purchase.Sold}}, 1},
		{"one after the other", []answer{{start: at(0), end: at(5), outcome: purchase.Sold}, {start: at(5), end: at(9)}}, 1},
		{"a crowd before an empty shelf", []answer{
			{start: at(0), end: at(1), outcome: purchase.Sold}, {start: at(2), end: at(9), outcome: purchase.SoldOut}, {start: at(2), end: at(9), outcome: purchase.SoldOut},
		}, 1},
		{"two at once", []answer{{start: at(0), end: at(6), outcome: purchase.Sold}, {start: at(5), end: at(9)}}, 2},
		{"two sent at once, served one after the other", []answer{
			{start: at(0), end: at(9), inside: [2]time.Time{at(1), at(3)}, outcome: purchase.Sold}, {start: at(0), end: at(9), inside: [2]time.Time{at(4), at(6)}},
		}, 1},
		{"inside at once, and one turned away at the door", []answer{
			{start: at(0), end: at(9), inside: [2]time.Time{at(1), at(5)}, outcome: purchase.Sold},
			{start: at(0), end: at(9), inside: [2]time.Time{at(4), at(6)}},
			{start: at(0), end: at(9), outcome: purchase.Busy},
		}, 2},
		{"a sale that does not say", []answer{
			{start: at(0), end: at(9), inside: [2]time.Time{at(1), at(3)}}, {start: at(0), end: at(9), outcome: purchase.Sold},
		}, 2},
		{"never more than two", []answer{{start: at(0), end: at(4), outcome: purchase.Sold}, {start: at(3), end: at(7), outcome: purchase.Sold}, {start: at(6), end: at(9)}}, 2},
	} {
		if got := maxOverlap(c.answers); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	var sorted []time.Duration
	for i := range 200 {
		sorted = append(sorted, time.Duration(i+1))
	}
	for _, c := range []struct {
		p    float64
		want time.Duration
	}{{50, 100}, {99, 198}, {100, 200}, {0, 1}} {
		if got := percentile(sorted, c.p); got != c.want {
			t.Errorf("p%v of 1 to 200: %d, want %d", c.p, got, c.want)
		}
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("of nothing: %d", got)
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
		if got := readAnswer(&c.result); got.outcome != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.outcome, c.want)
		}
	}
}

// TestCompare: a record vouches for one receipt, and for the buyer who asked;
// and each record of a buyer of this crowd must have been told of.
func TestCompare(t *testing.T) {
	sold := func(asked string, id int64) answer {
		return answer{outcome: purchase.Sold, purchaser: asked, receipt: receipt{ID: id, Purchaser: "a", Amount: 1}}
	}
	told := func(asked string, outcome purchase.Outcome) answer {
		return answer{outcome: outcome, purchaser: asked}
	}
	for _, test := range []struct {
		name         string
		records      fixedBooks
		answers      []answer
		lost, untold int64
	}{
		{"recorded", fixedBooks{1: "a"}, []answer{sold("a", 1)}, 0, 0},
		{"one receipt for two", fixedBooks{1: "a"}, []answer{sold("a", 1), sold("a", 1)}, 1, 0},
		{"another's receipt", fixedBooks{1: "a"}, []answer{sold("b", 1)}, 1, 0},
		{"an id without record", fixedBooks{}, []answer{sold("a", 2)}, 1, 0},
		{"sold twice, told once", fixedBooks{1: "a", 2: "a"}, []answer{sold("a", 1)}, 0, 1},
		{"told busy, and sold", fixedBooks{1: "a"}, []answer{told("a", purchase.Busy)}, 0, 1},
		{"told sold out, and sold", fixedBooks{1: "a"}, []answer{told("a", purchase.SoldOut)}, 0, 1},
		{"unknown, and sold", fixedBooks{1: "a"}, []answer{told("a", purchase.Unknown)}, 0, 0},
		{"unknown, and sold twice", fixedBooks{1: "a", 2: "a"}, []answer{told("a", purchase.Unknown)}, 0, 1},
		{"unknown, and not sold", fixedBooks{}, []answer{told("a", purchase.Unknown)}, 0, 0},
		{"somebody else's record", fixedBooks{1: "z"}, []answer{told("a", purchase.SoldOut)}, 0, 0},
	} {
		lost, untold, err := Config{Books: test.records}.compare(t.Context(), test.answers, audit.Report{})
		if err != nil || lost != test.lost || untold != test.untold {
			t.Errorf("%s: lost %d, untold %d, %v; want %d and %d", test.name, lost, untold, err, test.lost, test.untold)
		}
	}
}

// fixedBooks has these purchasers by record, of one unit each.
type fixedBooks map[int64]string

func (b fixedBooks) Audit(context.Context, string) (audit.Report, error) { return audit.Report{}, nil }

func (b fixedBooks) Sales(context.Context, string) (map[int64]Sale, error) {
	sales := map[int64]Sale{}
	for id, who := range b {
		sales[id] = Sale{who, 1}
	}
	return sales, nil
}

// TestInSum: a service without a history is judged by what the sums prove.
func TestInSum(t *testing.T) {
	answers := []answer{{outcome: purchase.Sold}, {outcome: purchase.Sold}, {outcome: purchase.Unknown}, {outcome: purchase.SoldOut}}
	for records, want := range map[int64][2]int64{1: {1, 0}, 2: {0, 0}, 3: {0, 0}, 5: {0, 2}} {
		lost, untold := inSum(answers, audit.Report{Records: records})
		if lost != want[0] || untold != want[1] {
			t.Errorf("%d records: lost %d, untold %d; want %v", records, lost, untold, want)
		}
	}
}
