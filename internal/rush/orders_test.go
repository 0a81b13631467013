package rush

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/verdict"
)

// TestOrders: an order is one sale with one receipt, whenever it was asked for.
func TestOrders(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	is := func(outcome purchase.Outcome, id int64, receipt string, sent, begun int64) Answer {
		return Answer{Answer: audit.Answer{Outcome: outcome, ID: id}, Receipt: receipt, Sent: at(sent), Begun: at(begun)}
	}
	sold := func(id int64, receipt string) Answer { return is(purchase.Sold, id, receipt, 1, 9) }
	told := func(outcome purchase.Outcome) Answer { return is(outcome, 0, "", 1, 9) }
	for _, c := range []struct {
		name   string
		visits []Answer
		want   Orders
	}{
		{"one sale", []Answer{sold(1, "a"), sold(1, "a"), sold(1, "a"), sold(1, "a")}, Orders{Both: 1}},
		{"one after the other", []Answer{is(purchase.Sold, 1, "a", 1, 2), is(purchase.Sold, 1, "a", 3, 4), sold(1, "a")}, Orders{}},
		{"two sales", []Answer{sold(1, "a"), sold(2, "b"), sold(1, "a")}, Orders{Both: 1, Repeated: 1}},
		{"sold again after a restart", []Answer{sold(1, "a"), sold(1, "a"), sold(1, "a"), sold(3, "c")}, Orders{Both: 1, Repeated: 1}},
		{"denied", []Answer{sold(1, "a"), sold(1, "a"), told(purchase.SoldOut)}, Orders{Both: 1, Denied: 1}},
		{"refused once, while the other was under way", []Answer{sold(1, "a"), told(purchase.SoldOut), sold(1, "a")}, Orders{Both: 1}},
		{"bought later", []Answer{told(purchase.SoldOut), told(purchase.SoldOut), sold(1, "a")}, Orders{Both: 1}},
		{"never bought", []Answer{told(purchase.SoldOut), told(purchase.SoldOut), told(purchase.SoldOut)}, Orders{}},
		{"another receipt", []Answer{sold(1, "a"), sold(1, "a"), sold(1, "b")}, Orders{Both: 1, Altered: 1}},
		{"no answer", []Answer{sold(1, "a"), sold(1, "a"), told(purchase.Busy)}, Orders{Both: 1, Unclear: 1}},
	} {
		var got Orders
		got.Add(c.visits[0], c.visits[1], c.visits[2:]...)
		got.Known = nil
		if got.Both != c.want.Both || got.Repeated != c.want.Repeated || got.Denied != c.want.Denied || got.Altered != c.want.Altered || got.Unclear != c.want.Unclear {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestKeyedVerdict: what the orders show goes before what they leave open, and after a
// lost sale.
func TestKeyedVerdict(t *testing.T) {
	for _, c := range []struct {
		name   string
		before verdict.Verdict
		orders Orders
		want   verdict.Verdict
	}{
		{"sound", verdict.Holds, Orders{Both: 1}, verdict.Holds},
		{"never at once", verdict.Holds, Orders{}, verdict.Inconclusive},
		{"sold twice", verdict.Oversold, Orders{Both: 1, Repeated: 1}, verdict.Duplicated},
		{"a sale lost", verdict.Lost, Orders{Both: 1, Repeated: 1}, verdict.Lost},
		{"denied", verdict.Inconclusive, Orders{Both: 1, Denied: 1}, verdict.Leaked},
		{"altered", verdict.Holds, Orders{Both: 1, Altered: 1}, verdict.Leaked},
		{"no answer", verdict.Holds, Orders{Both: 1, Unclear: 1}, verdict.Inconclusive},
		{"oversold and denied", verdict.Oversold, Orders{Both: 1, Denied: 1}, verdict.Oversold},
	} {
		r := Result{Verdict: c.before}
		if r.keyed(c.orders); r.Verdict != c.want {
			t.Errorf("%s: %s, want %s", c.name, r.Verdict, c.want)
		}
	}
}
