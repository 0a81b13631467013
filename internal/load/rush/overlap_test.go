package rush

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// TestMaxOverlap: the times that the shop reports replace those of the buyers, if it reports them for
// every sale.
func TestMaxOverlap(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	// sent returns a buy that lasted the whole time for its buyer.
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
		if got := Overlap(c.answers); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
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
