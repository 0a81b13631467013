package audit

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/purchase"
)

// TestCompare: a record matches one receipt, that of its own buyer. The shop must have reported each record
// to its buyer.
func TestCompare(t *testing.T) {
	sold := func(asked string, id int64) Answer { return Answer{Purchaser: asked, Outcome: purchase.Sold, ID: id} }
	told := func(asked string, outcome purchase.Outcome) Answer {
		return Answer{Purchaser: asked, Outcome: outcome}
	}
	three := func(a Answer) Answer { a.Units = 3; return a }
	one := func(purchasers ...string) map[int64]Sale { // records 1, 2, ...
		sales := map[int64]Sale{}
		for i, who := range purchasers {
			sales[int64(i+1)] = Sale{Purchaser: who, Amount: 1}
		}
		return sales
	}
	for _, test := range []struct {
		name         string
		sales        map[int64]Sale
		answers      []Answer
		lost, untold int64
	}{
		{"recorded", one("a"), []Answer{sold("a", 1)}, 0, 0},
		{"one receipt for two", one("a"), []Answer{sold("a", 1), sold("a", 1)}, 1, 0},
		{"another's receipt", one("a"), []Answer{sold("b", 1)}, 1, 0},
		{"an id without record", one(), []Answer{sold("a", 2)}, 1, 0},
		{"two units for one", map[int64]Sale{1: {Purchaser: "a", Amount: 2}}, []Answer{sold("a", 1)}, 1, 0},
		{"three units for three", map[int64]Sale{1: {Purchaser: "a", Amount: 3}}, []Answer{three(sold("a", 1))}, 0, 0},
		{"one unit for three", one("a"), []Answer{three(sold("a", 1))}, 1, 0},
		{"an id lost, and given to another", one("b"), []Answer{sold("a", 1), sold("b", 1)}, 1, 0},
		{"sold twice, told once", one("a", "a"), []Answer{sold("a", 1)}, 0, 1},
		{"told busy, and sold", one("a"), []Answer{told("a", purchase.Busy)}, 0, 1},
		{"told sold out, and sold", one("a"), []Answer{told("a", purchase.SoldOut)}, 0, 1},
		{"unknown, and sold", one("a"), []Answer{told("a", purchase.Unknown)}, 0, 0},
		{"unknown, and sold twice", one("a", "a"), []Answer{told("a", purchase.Unknown)}, 0, 1},
		{"unknown, and not sold", one(), []Answer{told("a", purchase.Unknown)}, 0, 0},
		{"somebody else's record", one("z"), []Answer{told("a", purchase.SoldOut)}, 0, 0},
	} {
		if lost, untold := Compare(test.answers, test.sales); lost != test.lost || untold != test.untold {
			t.Errorf("%s: lost %d, untold %d; want %d and %d", test.name, lost, untold, test.lost, test.untold)
		}
	}
}

func TestOverlap(t *testing.T) {
	buy := func(outcome purchase.Outcome, from, to int64) Answer {
		return Answer{Outcome: outcome, Start: time.UnixMilli(from), End: time.UnixMilli(to)}
	}
	for _, c := range []struct {
		name    string
		answers []Answer
		want    int
	}{
		{"none", nil, 0},
		{"one", []Answer{buy(purchase.Sold, 0, 9)}, 1},
		{"one after the other", []Answer{buy(purchase.Sold, 0, 5), buy(purchase.SoldOut, 5, 9)}, 1},
		{"two at once", []Answer{buy(purchase.Sold, 0, 6), buy(purchase.SoldOut, 5, 9)}, 2},
		{"never more than two", []Answer{buy(purchase.Sold, 0, 4), buy(purchase.Sold, 3, 7), buy(purchase.SoldOut, 6, 9)}, 2},
		{"what may be a sale", []Answer{buy(purchase.Unknown, 0, 6), buy(purchase.SoldOut, 5, 9)}, 2},
		{"a crowd before an empty shelf", []Answer{
			buy(purchase.Sold, 0, 1), buy(purchase.SoldOut, 2, 9), buy(purchase.SoldOut, 2, 9),
		}, 1},
	} {
		expect.Equal(t, Overlap(c.answers), c.want, c.name)
	}
}

// TestDenied: it is correct to refuse an order for more units than are left.
func TestDenied(t *testing.T) {
	answers := []Answer{
		{Outcome: purchase.SoldOut}, {Units: 2, Outcome: purchase.SoldOut}, {Units: 3, Outcome: purchase.SoldOut}, {Units: 2, Outcome: purchase.Sold},
	}
	expect.Equal(t, Demand(answers), 8, "units asked for")
	for left, want := range map[int64]int64{0: 0, 1: 1, 2: 2, 9: 3} {
		e := Evidence{Sums: Sums{Leftover: left}}
		if e.Count(answers); e.Denied != want || e.SoldOut != 3 {
			t.Errorf("%d left: %d denied, %d told sold out; want %d and 3", left, e.Denied, e.SoldOut, want)
		}
	}
}

// TestReserved: buyers that gave up may have reserved the units that are left. Two units are left,
// and one buyer is refused from second 2 to second 3.
func TestReserved(t *testing.T) {
	second := func(n int) time.Time { return time.Unix(int64(n), 0) }
	for name, c := range map[string]struct {
		outcome    purchase.Outcome
		start, end int
		units      int64
		want       int64
	}{
		"gave up meanwhile":   {purchase.Busy, 0, 5, 2, 0},
		"had too few":         {purchase.Busy, 0, 5, 1, 1},
		"gave up before":      {purchase.Busy, 0, 1, 2, 1},
		"came later":          {purchase.Busy, 4, 5, 2, 1},
		"hung up meanwhile":   {purchase.Unknown, 0, 5, 2, 0},
		"failed meanwhile":    {purchase.Failed, 0, 5, 2, 0},
		"bought meanwhile":    {purchase.Sold, 0, 5, 2, 1},
		"was refused as well": {purchase.SoldOut, 0, 5, 3, 1},
	} {
		e := Evidence{Sums: Sums{Leftover: 2}}
		e.Count([]Answer{
			{Outcome: purchase.SoldOut, Start: second(2), End: second(3)},
			{Outcome: c.outcome, Units: c.units, Start: second(c.start), End: second(c.end)},
		})
		expect.Equal(t, e.Denied, c.want, name, "denied")
	}
}

// TestCountLongRun: the time of Count does not grow with the square of the answers. A long run of a
// broken shop refuses hundreds of thousands of buyers.
func TestCountLongRun(t *testing.T) {
	const each = 200_000
	var answers []Answer
	for i := range each {
		at := time.UnixMicro(int64(i))
		answers = append(answers,
			Answer{Outcome: purchase.SoldOut, Start: at, End: at.Add(10)},
			Answer{Outcome: purchase.Busy, Start: at.Add(10), End: at.Add(20)})
	}
	e := Evidence{Sums: Sums{Leftover: 1}}
	start := time.Now()
	e.Count(answers)
	if took := time.Since(start); e.Denied != each || took > 20*time.Second {
		t.Errorf("%d denied in %s, want %d in a moment", e.Denied, took, each)
	}
}

// TestCount: Count separates errors of the shop from answers that the shop is not responsible for.
func TestCount(t *testing.T) {
	var e Evidence
	for _, outcome := range purchase.Outcomes() {
		e.Count([]Answer{{Outcome: outcome}})
	}
	if e.Sold != 1 || e.SoldOut != 1 || e.Busy != 1 || e.Unanswered != 2 {
		t.Errorf("%+v, want one sold, one sold out, one busy, two without an answer", e)
	}
	var doubtful Evidence
	doubtful.Count([]Answer{{Outcome: purchase.Unknown, Units: 3, Status: 504}, {Outcome: purchase.Unknown, Units: 5, IsLost: true}, {Outcome: purchase.Busy, Units: 7}})
	expect.Equal(t, doubtful.Doubtful, 3, "units in doubt")
	failed := func(status int) Answer { return Answer{Outcome: purchase.Failed, Status: status} }
	lost := Answer{Outcome: purchase.Unknown, IsLost: true}
	for _, c := range []struct {
		name                             string
		recorded                         int64
		answers                          []Answer
		failed, unanswered, lost, unread int64
	}{
		{"errors", 0, []Answer{failed(500), failed(502), failed(200)}, 3, 0, 0, 0},
		{"a server is down", 0, []Answer{failed(503), {Outcome: purchase.SoldOut}}, 0, 1, 0, 0},
		{"unknown requests", 0, []Answer{failed(404), failed(501)}, 0, 2, 0, 0},
		{"unknown requests, and others served", 0, []Answer{failed(404), failed(501), {Outcome: purchase.SoldOut}}, 2, 0, 0, 0},
		{"an unknown outcome", 0, []Answer{{Outcome: purchase.Unknown, Status: 504}}, 0, 1, 0, 0},
		{"lost, none recorded", 0, []Answer{lost, lost}, 0, 0, 2, 2},
		{"lost, one recorded", 2, []Answer{lost, lost, {Outcome: purchase.Sold}}, 0, 0, 2, 1},
	} {
		e := Evidence{Sums: Sums{UnitsSold: c.recorded}}
		e.Count(c.answers)
		if e.Failed != c.failed || e.Unanswered != c.unanswered || e.Unheard != c.lost || e.Unread != c.unread {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
}
