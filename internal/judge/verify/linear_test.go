package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/purchase"
)

// TestLinear: a good and a bad history of each kind. Times are in ms; an open buy
// has no return.
func TestLinear(t *testing.T) {
	const open = -1
	op := func(outcome purchase.Outcome, call, ret int64, left ...int64) buy {
		b := buy{purchaser: "a", call: time.UnixMilli(call), outcome: outcome}
		if ret != open {
			b.ret = time.UnixMilli(ret)
		}
		if len(left) > 0 {
			b.left = &left[0]
		}
		return b
	}
	of := func(units int64, b buy) buy { b.amount = units; return b }
	const sold, out, unknown, busy = purchase.Sold, purchase.SoldOut, purchase.Unknown, purchase.Busy
	for _, c := range []struct {
		name   string
		stock  int64
		counts counts
		buys   []buy
		want   Linearizable
	}{
		{"nothing", 1, exactly, nil, ""},
		{"one after the other", 2, exactly, []buy{op(sold, 0, 1, 1), op(sold, 2, 3, 0), op(out, 4, 5)}, LinearYes},
		{"at once, told the other way round", 2, exactly, []buy{op(sold, 0, 9, 0), op(sold, 1, 8, 1)}, LinearYes},
		{"told the wrong way round", 2, exactly, []buy{op(sold, 0, 1, 0), op(sold, 2, 3, 1)}, LinearNo},
		{"both told that the other is not there", 2, exactly, []buy{op(sold, 0, 9, 1), op(sold, 1, 8, 1)}, LinearNo},
		{"one unit, two sales", 1, exactly, []buy{op(sold, 0, 9), op(sold, 1, 8)}, LinearNo},
		{"sold out, and later it was not", 1, exactly, []buy{op(out, 0, 1), op(sold, 2, 3, 0)}, LinearNo},
		{"sold out while the last is sold", 1, exactly, []buy{op(out, 0, 9), op(sold, 1, 2, 0)}, LinearYes},
		{"one of unknown fate has taken it", 1, exactly, []buy{op(unknown, 0, open), op(out, 5, 6)}, LinearYes},
		{"one of unknown fate has not", 1, exactly, []buy{op(unknown, 0, open), op(sold, 5, 6, 0)}, LinearYes},
		{"one of unknown fate comes late", 2, exactly, []buy{op(unknown, 0, open), op(sold, 5, 6, 1), op(sold, 7, 8, 0)}, LinearYes},
		{"one of unknown fate takes one, not two", 2, exactly, []buy{op(unknown, 0, open), op(out, 5, 6)}, LinearNo},
		{"the open one was called too late", 1, exactly, []buy{op(out, 0, 1), op(unknown, 2, open)}, LinearNo},
		{"busy changes nothing", 1, exactly, []buy{op(busy, 0, 1), op(sold, 2, 3, 0)}, LinearYes},
		{"a unit is held and given back", 2, admits, []buy{op(out, 0, 1), op(sold, 2, 3, 0), op(sold, 4, 5, 0)}, LinearYes},
		{"the same where nobody may hold one", 2, exactly, []buy{op(out, 0, 1), op(sold, 2, 3, 0), op(sold, 4, 5, 0)}, LinearNo},
		{"two units leave two less", 3, exactly, []buy{of(2, op(sold, 0, 1, 1)), op(sold, 2, 3, 0)}, LinearYes},
		{"two units leave one less", 3, exactly, []buy{of(2, op(sold, 0, 1, 2))}, LinearNo},
		{"too few for two, enough for one", 1, exactly, []buy{of(2, op(out, 0, 1)), op(sold, 2, 3, 0)}, LinearYes},
		{"three of two units", 2, exactly, []buy{of(3, op(sold, 0, 1))}, LinearNo},
		{"one of unknown fate asked for too many", 1, exactly, []buy{of(2, op(unknown, 0, open)), op(sold, 5, 6, 0)}, LinearYes},
		{"neither has seen the other", 2, lags, []buy{op(sold, 0, 9, 1), op(sold, 1, 8, 1), op(out, 10, 11)}, LinearYes},
		{"it has not seen the one before", 2, lags, []buy{op(sold, 0, 9, 1), op(sold, 1, 2, 0)}, LinearYes},
		{"less left than there is, where that cannot be", 2, lags, []buy{op(sold, 0, 1, 0)}, LinearNo},
		{"sold out too early, where it is exact", 1, lags, []buy{op(out, 0, 1), op(sold, 2, 3, 0)}, LinearNo},
		{"two of one unit, whatever is left", 1, lags, []buy{op(sold, 0, 9, 0), op(sold, 1, 8, 0)}, LinearNo},
		{"what is held cannot be sold twice", 1, admits, []buy{op(sold, 0, 1, 0), op(sold, 2, 3, 0)}, LinearNo},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, _, _ := checkLinear(c.buys, c.stock, c.counts, time.Minute); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestLinearUnknown: what is not decided in time is unknown, and never a yes.
func TestLinearUnknown(t *testing.T) {
	buys := []buy{{call: time.UnixMilli(2000), ret: time.UnixMilli(2001), outcome: purchase.SoldOut}} // and one unit is left
	for i := range int64(60) {                                                                        // all alike and at once
		buys = append(buys, buy{call: time.UnixMilli(i), ret: time.UnixMilli(1000 + i), outcome: purchase.Sold})
	}
	if got, _, _ := checkLinear(buys, 61, exactly, 50*time.Millisecond); got != LinearUnknown {
		t.Errorf("%q, want %q", got, LinearUnknown)
	}
	if got, _, _ := checkLinear(buys, 59, exactly, 50*time.Millisecond); got != LinearNo { // more sales than units
		t.Errorf("%q, want %q", got, LinearNo)
	}
}

// TestBuysIn: a history's buys, from the last restock on; who never returned is
// of unknown fate until the records say.
func TestBuysIn(t *testing.T) {
	at := func(ms int64, kind history.Kind, who string, outcome purchase.Outcome) history.Event {
		return history.Event{Kind: kind, At: time.UnixMilli(ms), Purchaser: who, Outcome: string(outcome)}
	}
	restock := at(5, history.Restocked, "", "")
	restock.Amount = 3
	buys, stock := buysIn([]history.Event{
		at(9, history.Return, "b", purchase.SoldOut), // another process's pipe came first
		at(1, history.Call, "old", ""), restock,
		at(6, history.Call, "a", ""), at(7, history.Call, "b", ""), at(8, history.Call, "c", ""), at(8, history.Call, "d", ""),
		at(10, history.Return, "a", purchase.Sold), at(11, history.Return, "d", purchase.Unknown),
		{Kind: history.Call, At: time.UnixMilli(12), Product: "pear", Purchaser: "e"}, // is another counter
	}, "")
	if len(buys) != 4 || stock != 3 {
		t.Fatalf("%d buys, stock %d: %+v", len(buys), stock, buys)
	}
	for i, want := range []purchase.Outcome{purchase.Sold, purchase.SoldOut, purchase.Unknown, purchase.Unknown} {
		if buys[i].outcome != want || buys[i].ret.IsZero() != (want == purchase.Unknown) {
			t.Errorf("buy %d: %+v, want %s", i, buys[i], want)
		}
	}
	known := settledBy(buys, map[int64]audit.Sale{1: {Purchaser: "a", Amount: 1}, 2: {Purchaser: "c", Amount: 1}})
	if len(known) != 3 || known[2].purchaser != "c" || known[2].outcome != purchase.Sold || !known[2].ret.IsZero() {
		t.Errorf("%+v: want that c has bought and d has not", known)
	}
	again := []buy{{purchaser: "e", outcome: purchase.Unknown}, {purchaser: "e", outcome: purchase.Sold}, {purchaser: "f", outcome: purchase.Sold}}
	if known := settledBy(again, map[int64]audit.Sale{1: {Purchaser: "e", Amount: 1}}); len(known) != 2 || known[1].purchaser != "f" {
		t.Errorf("%+v: want one sale of e, which sent its order again, and one of f, which has no record", known)
	}
}

// TestNotLinear: books that agree do not cover for answers that no order explains.
// The cell is red, says so, and has its picture.
func TestNotLinear(t *testing.T) {
	one := int64(1)
	buys := []buy{
		{purchaser: "a", call: time.UnixMilli(0), ret: time.UnixMilli(1), outcome: purchase.Sold, left: &one},
		{purchaser: "b", call: time.UnixMilli(2), ret: time.UnixMilli(3), outcome: purchase.Sold, left: &one},
	}
	cell := Cell{
		Verdict: verdict.Holds, Promise: verdict.Holds, Reason: "2 units sold of 2 stocked, 0 left",
		History: filepath.Join(t.TempDir(), "rush.ndjson"),
	}
	if err := cell.linear(buys, 2); err != nil {
		t.Fatal(err)
	}
	cell.Evidence = cell.evidence()
	cell.Settle()
	if cell.OK || cell.Linearizable != LinearNo || cell.Verdict != verdict.Nonlinearizable || !strings.Contains(cell.Evidence, "no order of the buys explains") {
		t.Errorf("%+v", cell)
	}
	if page, err := os.ReadFile(cell.Picture); err != nil || !strings.Contains(string(page), "2 units") && !strings.Contains(string(page), "1 left") {
		t.Errorf("the picture: %v, %d bytes", err, len(page))
	}
}
