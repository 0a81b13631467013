package linear

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/purchase"
)

// TestCheck covers good and bad histories of each kind. Times are in ms; an open buy has no Return.
func TestCheck(t *testing.T) {
	const open = -1
	op := func(outcome purchase.Outcome, call, ret int64, left ...int64) Buy {
		b := Buy{Purchaser: "a", Call: time.UnixMilli(call), Outcome: outcome}
		if ret != open {
			b.Return = time.UnixMilli(ret)
		}
		if len(left) > 0 {
			b.Left = &left[0]
		}
		return b
	}
	of := func(units int64, b Buy) Buy { b.Amount = units; return b }
	const sold, out, unknown, busy = purchase.Sold, purchase.SoldOut, purchase.Unknown, purchase.Busy
	for _, c := range []struct {
		name   string
		stock  int64
		counts Counts
		buys   []Buy
		want   Result
	}{
		{"nothing", 1, Exactly, nil, ""},
		{"one after the other", 2, Exactly, []Buy{op(sold, 0, 1, 1), op(sold, 2, 3, 0), op(out, 4, 5)}, Yes},
		{"at once, answered the other way round", 2, Exactly, []Buy{op(sold, 0, 9, 0), op(sold, 1, 8, 1)}, Yes},
		{"answered the wrong way round", 2, Exactly, []Buy{op(sold, 0, 1, 0), op(sold, 2, 3, 1)}, No},
		{"neither counts the other", 2, Exactly, []Buy{op(sold, 0, 9, 1), op(sold, 1, 8, 1)}, No},
		{"one unit, two sales", 1, Exactly, []Buy{op(sold, 0, 9), op(sold, 1, 8)}, No},
		{"sold out, and later it was not", 1, Exactly, []Buy{op(out, 0, 1), op(sold, 2, 3, 0)}, No},
		{"sold out while the last is sold", 1, Exactly, []Buy{op(out, 0, 9), op(sold, 1, 2, 0)}, Yes},
		{"an unknown outcome took it", 1, Exactly, []Buy{op(unknown, 0, open), op(out, 5, 6)}, Yes},
		{"an unknown outcome did not take it", 1, Exactly, []Buy{op(unknown, 0, open), op(sold, 5, 6, 0)}, Yes},
		{"an unknown outcome comes late", 2, Exactly, []Buy{op(unknown, 0, open), op(sold, 5, 6, 1), op(sold, 7, 8, 0)}, Yes},
		{"an unknown outcome takes one, not two", 2, Exactly, []Buy{op(unknown, 0, open), op(out, 5, 6)}, No},
		{"the open one was called too late", 1, Exactly, []Buy{op(out, 0, 1), op(unknown, 2, open)}, No},
		{"busy changes nothing", 1, Exactly, []Buy{op(busy, 0, 1), op(sold, 2, 3, 0)}, Yes},
		{"a unit is held and given back", 2, Admits, []Buy{op(out, 0, 1), op(sold, 2, 3, 0), op(sold, 4, 5, 0)}, Yes},
		{"the same if no buyer may hold one", 2, Exactly, []Buy{op(out, 0, 1), op(sold, 2, 3, 0), op(sold, 4, 5, 0)}, No},
		{"two units leave two less", 3, Exactly, []Buy{of(2, op(sold, 0, 1, 1)), op(sold, 2, 3, 0)}, Yes},
		{"two units leave one less", 3, Exactly, []Buy{of(2, op(sold, 0, 1, 2))}, No},
		{"too few for two, enough for one", 1, Exactly, []Buy{of(2, op(out, 0, 1)), op(sold, 2, 3, 0)}, Yes},
		{"three of two units", 2, Exactly, []Buy{of(3, op(sold, 0, 1))}, No},
		{"an unknown outcome asked for too many", 1, Exactly, []Buy{of(2, op(unknown, 0, open)), op(sold, 5, 6, 0)}, Yes},
		{"neither has seen the other", 2, Lags, []Buy{op(sold, 0, 9, 1), op(sold, 1, 8, 1), op(out, 10, 11)}, Yes},
		{"it has not seen the one before", 2, Lags, []Buy{op(sold, 0, 9, 1), op(sold, 1, 2, 0)}, Yes},
		{"left is too small, although it only lags", 2, Lags, []Buy{op(sold, 0, 1, 0)}, No},
		{"sold out too early, although it is exact", 1, Lags, []Buy{op(out, 0, 1), op(sold, 2, 3, 0)}, No},
		{"two of one unit, whatever is left", 1, Lags, []Buy{op(sold, 0, 9, 0), op(sold, 1, 8, 0)}, No},
		{"what is held cannot be sold twice", 1, Admits, []Buy{op(sold, 0, 1, 0), op(sold, 2, 3, 0)}, No},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, Check(c.buys, c.stock, c.counts, time.Minute), c.want)
		})
	}
}

// TestReserves: a lost order explains a refusal only while it may have reserved its units. Times are in ms.
func TestReserves(t *testing.T) {
	const before, after = 0, 20 // a refusal returns at 10
	lost := func(call, units int64) Buy {
		return Buy{Purchaser: "lost", Amount: units, Call: time.UnixMilli(call), Outcome: purchase.Unknown}
	}
	refused := Buy{Purchaser: "refused", Call: time.UnixMilli(5), Return: time.UnixMilli(10), Outcome: purchase.SoldOut}
	sold := func(call, left int64) Buy {
		return Buy{Purchaser: "sold", Call: time.UnixMilli(call), Return: time.UnixMilli(call + 1), Outcome: purchase.Sold, Left: &left}
	}
	recorded := map[int64]audit.Sale{}
	for id := range int64(3) {
		recorded[id] = audit.Sale{Purchaser: "sold", Amount: 1}
	}
	writesLater := CountsOf(false, false, true)
	for _, c := range []struct {
		name   string
		stock  int64
		counts Counts
		buys   []Buy
		want   Result
	}{
		{"a lost order held the unit", 2, writesLater, []Buy{lost(before, 1), sold(1, 1), refused, sold(after, 0)}, Yes},
		{"two lost orders", 2, writesLater, []Buy{lost(before, 1), lost(before, 1), refused, sold(after, 1), sold(after+2, 0)}, Yes},
		{"one lost order for two units", 2, writesLater, []Buy{lost(before, 2), refused, sold(after, 1), sold(after+2, 0)}, Yes},
		{"a strategy that writes at once", 2, CountsOf(false, false, false), []Buy{lost(before, 1), sold(1, 1), refused, sold(after, 0)}, No},
		{"no lost order", 2, writesLater, []Buy{sold(1, 1), refused, sold(after, 0)}, No},
		{"it came after the refusal", 2, writesLater, []Buy{sold(1, 1), refused, lost(after, 1), sold(after, 0)}, No},
		{"it held one unit of two", 2, writesLater, []Buy{lost(before, 1), refused, sold(after, 1), sold(after+2, 0)}, No},
		{"the same left twice", 2, writesLater, []Buy{lost(before, 1), refused, sold(after, 0), sold(after, 0)}, No},
		{"left does not count the sale before", 3, writesLater, []Buy{lost(before, 1), sold(1, 1), refused, sold(after, 0)}, No},
		{"more sold than stocked", 2, writesLater, []Buy{lost(before, 1), sold(1, 1), refused, sold(after, 0), sold(after+2, -1)}, No},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, Check(Settle(c.buys, recorded), c.stock, c.counts, time.Minute), c.want)
		})
	}
}

// TestUnknown: a history that is not decided in time is Unknown, never Yes.
func TestUnknown(t *testing.T) {
	buys := []Buy{{Call: time.UnixMilli(2000), Return: time.UnixMilli(2001), Outcome: purchase.SoldOut}} // refused although one unit is left
	for i := range int64(60) {                                                                           // equal buys at the same time
		buys = append(buys, Buy{Call: time.UnixMilli(i), Return: time.UnixMilli(1000 + i), Outcome: purchase.Sold})
	}
	expect.Equal(t, Check(buys, 61, Exactly, 50*time.Millisecond), Unknown)
	if got := Check(buys, 59, Exactly, 50*time.Millisecond); got != No { // more sales than units
		t.Errorf("%q, want %q", got, No)
	}
}

// TestLimits: Check checks nothing for Unspecified, and does not search a history that is too
// long. It still detects more sales than units.
func TestLimits(t *testing.T) {
	long := make([]Buy, most+1)
	for i := range long {
		long[i] = Buy{Call: time.UnixMilli(1), Return: time.UnixMilli(2), Outcome: purchase.Sold}
	}
	expect.Equal(t, Check(long[:2], 1, Unspecified, time.Minute), "", "nothing is promised")
	expect.Equal(t, Check(long, int64(len(long)), Lags, time.Minute), Unknown, "a long history")
	expect.Equal(t, Check(long, 1, Lags, time.Minute), No, "a long history of one unit")
}
