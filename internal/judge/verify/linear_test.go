package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/linear"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// TestBuysIn: buysIn returns the buys since the last restock. The records decide about a buy that never
// returned.
func TestBuysIn(t *testing.T) {
	at := func(ms int64, kind history.Kind, who string, outcome purchase.Outcome) history.Event {
		return history.Event{Kind: kind, At: time.UnixMilli(ms), Purchaser: who, Outcome: string(outcome)}
	}
	restock := at(5, history.Restocked, "", "")
	restock.Amount = 3
	buys, stock := buysIn([]history.Event{
		at(9, history.Return, "b", purchase.SoldOut), // the other process's pipe was faster
		at(1, history.Call, "old", ""), restock,
		at(6, history.Call, "a", ""), at(7, history.Call, "b", ""), at(8, history.Call, "c", ""), at(8, history.Call, "d", ""),
		at(10, history.Return, "a", purchase.Sold), at(11, history.Return, "d", purchase.Unknown),
		{Kind: history.Call, At: time.UnixMilli(12), Product: "pear", Purchaser: "e"}, // a buy of another product
	}, "")
	if len(buys) != 4 || stock != 3 {
		t.Fatalf("%d buys, stock %d: %+v", len(buys), stock, buys)
	}
	for i, want := range []purchase.Outcome{purchase.Sold, purchase.SoldOut, purchase.Unknown, purchase.Unknown} {
		if buys[i].Outcome != want || buys[i].Return.IsZero() != (want == purchase.Unknown) {
			t.Errorf("buy %d: %+v, want %s", i, buys[i], want)
		}
	}
	known := linear.Settle(buys, map[int64]audit.Sale{1: {Purchaser: "a", Amount: 1}, 2: {Purchaser: "c", Amount: 1}})
	if len(known) != 3 || known[2].Purchaser != "c" || known[2].Outcome != purchase.Sold || !known[2].Return.IsZero() {
		t.Errorf("%+v: want that c has bought and d has not", known)
	}
	again := []linear.Buy{{Purchaser: "e", Outcome: purchase.Unknown}, {Purchaser: "e", Outcome: purchase.Sold}, {Purchaser: "f", Outcome: purchase.Sold}}
	if known := linear.Settle(again, map[int64]audit.Sale{1: {Purchaser: "e", Amount: 1}}); len(known) != 2 || known[1].Purchaser != "f" {
		t.Errorf("%+v: want one sale of e, which sent its order again, and one of f, which has no record", known)
	}
}

// TestNotLinear: right stock and records do not excuse answers that no order explains. The cell gets the
// verdict nonlinearizable and a picture.
func TestNotLinear(t *testing.T) {
	one := int64(1)
	buys := []linear.Buy{
		{Purchaser: "a", Call: time.UnixMilli(0), Return: time.UnixMilli(1), Outcome: purchase.Sold, Left: &one},
		{Purchaser: "b", Call: time.UnixMilli(2), Return: time.UnixMilli(3), Outcome: purchase.Sold, Left: &one},
	}
	cell := Cell{
		Verdict: verdict.Holds, Promise: verdict.Holds, Reason: "2 units sold of 2 stocked, 0 left",
		History: filepath.Join(t.TempDir(), "rush.ndjson"),
	}
	require.NoError(t, cell.linear(buys, 2))
	cell.Evidence = cell.evidence()
	cell.Settle()
	if cell.OK || cell.Linearizable != linear.No || cell.Verdict != verdict.Nonlinearizable || !strings.Contains(cell.Evidence, "no order of the buys explains") {
		t.Errorf("%+v", cell)
	}
	if page, err := os.ReadFile(cell.Picture); err != nil || !strings.Contains(string(page), "2 units") && !strings.Contains(string(page), "1 left") {
		t.Errorf("the picture: %v, %d bytes", err, len(page))
	}
}
