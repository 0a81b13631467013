package target

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestCrowd: a buyer without an answer may have bought or not. A rule counts as broken only if it is broken either way.
func TestCrowd(t *testing.T) {
	orders := func(n int) func(app.Told) []witness.Finding { // the rule that the number of orders equals :sold
		return func(t app.Told) []witness.Finding {
			if n == t.Sold {
				return nil
			}
			return []witness.Finding{{Query: "orders <> :sold", Columns: []string{"n"}, Rows: [][]string{{"1"}}}}
		}
	}
	negative := func(app.Told) []witness.Finding { return []witness.Finding{{Query: "stock < 0"}} }
	either := func(t app.Told) []witness.Finding { // for each number of sales, one of two rules is broken
		if t.Sold > 1 {
			return []witness.Finding{{Query: "orders < :sold"}}
		}
		return []witness.Finding{{Query: "orders >= :sold"}}
	}
	for _, c := range []struct {
		name  string
		crowd Crowd
		never func(app.Told) []witness.Finding
		want  verdict.Verdict
		why   string // part of the reason
		found int
	}{
		{"holds", Crowd{Buyers: 50, Sold: 1, AtOnce: 9, Alone: 1}, orders(1), verdict.Holds, "", 0},
		{"sold twice", Crowd{Buyers: 50, Sold: 2, AtOnce: 9, Alone: 1}, orders(1), verdict.Broken, "orders <> :sold", 1},
		{"a break needs no overlap", Crowd{Buyers: 50, Sold: 2, AtOnce: 1, Alone: 1}, orders(1), verdict.Broken, "orders <> :sold", 1},
		{"the unanswered may have bought", Crowd{Buyers: 50, Sold: 1, Unanswered: 1, late: 1, AtOnce: 9, Alone: 1}, orders(2), verdict.Inconclusive, "how many of the 1 buyers without an answer", 1},
		{"and may have not", Crowd{Buyers: 50, Sold: 1, Unanswered: 1, late: 1, AtOnce: 9, Alone: 1}, orders(1), verdict.Inconclusive, "how many of the 1 buyers without an answer", 1},
		{"too few orders for any number of sales", Crowd{Buyers: 50, Sold: 2, Unanswered: 3, AtOnce: 9, Alone: 1}, orders(1), verdict.Broken, "orders <> :sold", 1},
		{"too many orders for any number of sales", Crowd{Buyers: 50, Sold: 1, Unanswered: 3, AtOnce: 9, Alone: 1}, orders(5), verdict.Broken, "orders <> :sold", 1},
		{"all of the unanswered have bought", Crowd{Buyers: 50, Sold: 1, Unanswered: 3, late: 3, AtOnce: 9, Alone: 1}, orders(4), verdict.Inconclusive, "of the 3", 1},
		{"a rule without :sold", Crowd{Buyers: 50, Sold: 1, Unanswered: 3, AtOnce: 9, Alone: 1}, negative, verdict.Broken, "stock < 0", 1},
		{"another rule for another number", Crowd{Buyers: 50, Sold: 1, Unanswered: 1, AtOnce: 9, Alone: 1}, either, verdict.Broken, "orders >= :sold", 1},
		{"no overlap", Crowd{Buyers: 50, Sold: 1, AtOnce: 1, Alone: 1}, orders(1), verdict.Inconclusive, "at the servers at once", 0},
		{"no more than one buyer alone has", Crowd{Buyers: 50, Sold: 1, AtOnce: 2, Alone: 2}, orders(1), verdict.Inconclusive, "at the servers at once", 0},
		{"no command at all", Crowd{Buyers: 50, Sold: 1}, orders(1), verdict.Inconclusive, "at the servers at once", 0},
		{"most have failed, side by side", Crowd{Buyers: 50, Sold: 1, Failed: 49, AtOnce: 9, Alone: 1}, orders(1), verdict.Failed, "49 of 50 buyers got a failure or no answer", 0},
		{"a failure breaks the promise for any number of sales", Crowd{Buyers: 50, Sold: 1, Failed: 1, Unanswered: 1, late: 1, AtOnce: 9, Alone: 1}, orders(1), verdict.Failed, "1 of 50 buyers", 0},
		{"a broken rule is worse", Crowd{Buyers: 50, Sold: 2, Failed: 1, AtOnce: 9, Alone: 1}, orders(1), verdict.Broken, "orders <> :sold", 1},
		{"the shop hung up", Crowd{Buyers: 50, Sold: 1, Unanswered: 1, AtOnce: 9, Alone: 1}, orders(1), verdict.Failed, "1 of 50 buyers", 0},
		{"a rule about failures", Crowd{Buyers: 50, Sold: 1, Failed: 2, Unanswered: 1, AtOnce: 9, Alone: 1}, func(t app.Told) []witness.Finding {
			if t.Failed != 3 {
				return nil
			}
			return []witness.Finding{{Query: ":failed > 0"}}
		}, verdict.Broken, ":failed > 0", 1},
		{"slow is no failure, and no rule is broken for any number of sales", Crowd{Buyers: 50, Sold: 1, Unanswered: 9, late: 9, AtOnce: 9, Alone: 1}, func(app.Told) []witness.Finding { return nil }, verdict.Holds, "", 0},
		{"nobody bought", Crowd{Buyers: 50, AtOnce: 9, Alone: 1}, orders(0), verdict.Inconclusive, "no buyer was told", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.crowd
			err := got.judge(func(t app.Told) ([]witness.Finding, error) { return c.never(t), nil })
			if err != nil || got.Verdict != c.want || !strings.Contains(got.Why, c.why) || (got.Why == "") != (c.why == "") || len(got.Findings) != c.found {
				t.Errorf("%s (%s), %d findings, %v; want %s (%s), %d", got.Verdict, got.Why, len(got.Findings), err, c.want, c.why, c.found)
			}
		})
	}
}

// TestCrowdLeaves: a burst with unfinished work proves nothing, but a violation remains a violation.
func TestCrowdLeaves(t *testing.T) {
	for before, want := range map[verdict.Verdict]verdict.Verdict{
		verdict.Holds: verdict.Inconclusive, verdict.Broken: verdict.Broken, verdict.Inconclusive: verdict.Inconclusive,
	} {
		c := Crowd{Verdict: before}
		c.leaves("the program has ended")
		if c.Verdict != want || !strings.Contains(c.Why, "the program has ended") {
			t.Errorf("%s becomes %s (%s), want %s", before, c.Verdict, c.Why, want)
		}
		c = Crowd{Verdict: before}
		if c.leaves(""); c.Verdict != before || c.Why != "" {
			t.Errorf("%s becomes %s (%s), and nothing was left", before, c.Verdict, c.Why)
		}
	}
}
