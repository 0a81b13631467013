package rush

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// TestOrders: an order is one sale with one receipt, however often it is sent.
func TestOrders(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	is := func(outcome purchase.Outcome, id int64, receipt string, sent, begun int64) buyers.Answer {
		return buyers.Answer{Answer: audit.Answer{Outcome: outcome, ID: id}, Receipt: receipt, Sent: at(sent), AnswerBegan: at(begun)}
	}
	sold := func(id int64, receipt string) buyers.Answer { return is(purchase.Sold, id, receipt, 1, 9) }
	told := func(outcome purchase.Outcome) buyers.Answer { return is(outcome, 0, "", 1, 9) }
	round := func(answers ...buyers.Answer) []buyers.Answer { return answers }
	one, no, crash := sold(1, "a"), told(purchase.SoldOut), told(purchase.Failed)
	crash.Status = 500
	for _, c := range []struct {
		name   string
		rounds [][]buyers.Answer
		want   RepeatedOrders // CompareIDsOnly is an input
	}{
		{"one sale", [][]buyers.Answer{round(one, one), round(one, one)}, RepeatedOrders{Overlapping: 1}},
		{"one after the other", [][]buyers.Answer{round(is(purchase.Sold, 1, "a", 1, 2), is(purchase.Sold, 1, "a", 3, 4)), round(one)}, RepeatedOrders{}},
		{"two sales", [][]buyers.Answer{round(one, sold(2, "b")), round(one)}, RepeatedOrders{Overlapping: 1, Repeated: 1}},
		{"sold again after a restart", [][]buyers.Answer{round(one, one), round(one), round(sold(3, "c"))}, RepeatedOrders{Overlapping: 1, Repeated: 1}},
		{"denied", [][]buyers.Answer{round(one, one), round(no)}, RepeatedOrders{Overlapping: 1, Denied: 1}},
		{"refused once, while the other was under way", [][]buyers.Answer{round(one, no), round(one)}, RepeatedOrders{Overlapping: 1}},
		{"bought later", [][]buyers.Answer{round(no, no), round(one, no), round(one)}, RepeatedOrders{Overlapping: 1}},
		{"bought later, alone", [][]buyers.Answer{round(no, no), round(one)}, RepeatedOrders{}},
		{"bought later, and denied", [][]buyers.Answer{round(no, no), round(one, one), round(no)}, RepeatedOrders{Overlapping: 1, Denied: 1}},
		{"bought later, and no answer", [][]buyers.Answer{round(no, no), round(one, one), round(told(purchase.Unknown))}, RepeatedOrders{Overlapping: 1, Unclear: 1}},
		{"never bought", [][]buyers.Answer{round(no, no), round(no)}, RepeatedOrders{}},
		{"different receipt", [][]buyers.Answer{round(one, one), round(sold(1, "b"))}, RepeatedOrders{Overlapping: 1, DifferentReceipts: 1}},
		{"another receipt, where the id counts", [][]buyers.Answer{round(one, one), round(sold(1, "b"))}, RepeatedOrders{CompareIDsOnly: true, Overlapping: 1}},
		{"another id, where the id counts", [][]buyers.Answer{round(one, one), round(sold(2, "b"))}, RepeatedOrders{CompareIDsOnly: true, Overlapping: 1, Repeated: 1}},
		{"an error, and served later", [][]buyers.Answer{round(one, crash), round(one)}, RepeatedOrders{Overlapping: 1, Errors: 1}},
		{"no answer", [][]buyers.Answer{round(one, one), round(told(purchase.Busy))}, RepeatedOrders{Overlapping: 1, Unclear: 1}},
	} {
		got := RepeatedOrders{CompareIDsOnly: c.want.CompareIDsOnly}
		got.Add(c.rounds...)
		if visits := len(slices.Concat(c.rounds...)); len(got.Answers) != visits || len(got.Final) != 1+c.want.Repeated {
			t.Errorf("%s: %d answers, %d final; want %d and %d", c.name, len(got.Answers), len(got.Final), visits, 1+c.want.Repeated)
		}
		got.Answers, got.Final = nil, nil
		expect.DeepEqual(t, got, c.want, c.name)
	}
}

// TestFinalAnswers: a final answer has its own times, and not those of another request.
func TestFinalAnswers(t *testing.T) {
	visit := func(outcome purchase.Outcome, id, start int64) buyers.Answer {
		return buyers.Answer{Answer: audit.Answer{Outcome: outcome, ID: id, Start: time.UnixMilli(start), End: time.UnixMilli(start + 1)}}
	}
	sold, again, twice := visit(purchase.Sold, 1, 20), visit(purchase.Sold, 1, 30), visit(purchase.Sold, 2, 40)
	no, busy, unknown := visit(purchase.SoldOut, 0, 10), visit(purchase.Busy, 0, 50), visit(purchase.Unknown, 0, 60)
	for _, c := range []struct {
		name         string
		visits, want []buyers.Answer
	}{
		{"the first that tells of the sale", []buyers.Answer{no, sold, again, unknown}, []buyers.Answer{sold}},
		{"a second sale needs a record, too", []buyers.Answer{sold, twice, again}, []buyers.Answer{sold, twice}},
		{"it may have been sold", []buyers.Answer{no, unknown, busy}, []buyers.Answer{unknown}},
		{"refused in the end", []buyers.Answer{busy, no}, []buyers.Answer{no}},
	} {
		expect.DeepEqual(t, finalAnswers(c.visits), c.want, c.name)
	}
}

// TestOrdersJudge: a break of an order outweighs an unclear order, and a lost sale outweighs both.
func TestOrdersJudge(t *testing.T) {
	for _, c := range []struct {
		name   string
		before verdict.Verdict
		orders RepeatedOrders
		want   verdict.Verdict
		says   string
	}{
		{"sound", verdict.Holds, RepeatedOrders{Overlapping: 1}, verdict.Holds, "before; with two overlapping requests, 1 order was sold"},
		{"never at once", verdict.Holds, RepeatedOrders{}, verdict.Inconclusive, "overlapping"},
		{"sold twice", verdict.Oversold, RepeatedOrders{Overlapping: 1, Repeated: 1}, verdict.Duplicated, "more than once under one Idempotency-Key; before"},
		{"a sale lost", verdict.Lost, RepeatedOrders{Overlapping: 1, Repeated: 1}, verdict.Lost, "before"},
		{"denied", verdict.Inconclusive, RepeatedOrders{Overlapping: 1, Denied: 1}, verdict.Leaked, "refusal"},
		{"altered", verdict.Holds, RepeatedOrders{Overlapping: 1, DifferentReceipts: 1}, verdict.Leaked, "different receipt"},
		{"an error, and served later", verdict.Holds, RepeatedOrders{Overlapping: 1, Errors: 1}, verdict.Failed, "1 request answered with an error"},
		{"no answer", verdict.Holds, RepeatedOrders{Overlapping: 1, Unclear: 1}, verdict.Inconclusive, "got no answer"},
		{"inconclusive before", verdict.Inconclusive, RepeatedOrders{Overlapping: 1, Unclear: 1}, verdict.Inconclusive, "before"},
		{"oversold and denied", verdict.Oversold, RepeatedOrders{Overlapping: 1, Denied: 1}, verdict.Oversold, "before"},
	} {
		if got, why := c.orders.Judge(c.before, "before"); got != c.want || !strings.Contains(why, c.says) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got, why, c.want, c.says)
		}
	}
}

// TestMaxOverlap: the times that the shop reports replace those of the buyers, if it reports them for
// every sale.
func TestMaxOverlap(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	// sent returns an answer for which its buyer waited the whole time.
	sent := func(outcome purchase.Outcome, inside ...time.Time) buyers.Answer {
		a := buyers.Answer{Answer: audit.Answer{Start: at(0), End: at(9), Outcome: outcome}}
		copy(a.Inside[:], inside)
		return a
	}
	for _, c := range []struct {
		name    string
		answers []buyers.Answer
		want    int
	}{
		{"none", nil, 0},
		{"nobody says", []buyers.Answer{sent(purchase.Sold), sent(purchase.SoldOut)}, 2},
		{"sent at once, served one after the other", []buyers.Answer{
			sent(purchase.Sold, at(1), at(3)), sent(purchase.SoldOut, at(4), at(6)),
		}, 1},
		{"inside at once, and one turned away at the door", []buyers.Answer{
			sent(purchase.Sold, at(1), at(5)), sent(purchase.SoldOut, at(4), at(6)), sent(purchase.Busy),
		}, 2},
		{"a sale that does not say", []buyers.Answer{sent(purchase.SoldOut, at(1), at(3)), sent(purchase.Sold)}, 2},
	} {
		expect.Equal(t, Overlap(c.answers), c.want, c.name)
	}
}

// TestInSum: a service without a history is judged by its sums.
func TestInSum(t *testing.T) {
	var answers []buyers.Answer
	for _, outcome := range []purchase.Outcome{purchase.Sold, purchase.Sold, purchase.Unknown, purchase.SoldOut} {
		answers = append(answers, buyers.Answer{Answer: audit.Answer{Outcome: outcome}})
	}
	for records, want := range map[int64][2]int64{1: {1, 0}, 2: {0, 0}, 3: {0, 0}, 5: {0, 2}} {
		lost, untold := inSum(buyers.Answers(answers), audit.Sums{Records: records})
		if lost != want[0] || untold != want[1] {
			t.Errorf("%d records: lost %d, untold %d; want %v", records, lost, untold, want)
		}
	}
}
