package rush

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/linear"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// A note contains the members of a receipt that do not identify the sale. A member is nil if the service does
// not send it.
type note struct {
	Left     *int64 `json:"left"`
	WaitedMS *int64 `json:"waited_ms"`
}

// noteOf reads a receipt. It returns an empty note if a member has a JSON type other than in our own receipts.
func noteOf(a buyers.Answer) (n note) {
	if json.Unmarshal([]byte(a.Receipt), &n) != nil {
		return note{}
	}
	return n
}

// clockSlack is the time by which waited_ms may exceed the time of the request. Services round,
// and their clocks differ from ours.
const clockSlack = 100 * time.Millisecond

// receipts judges the members of receipts that do not identify the sale. `stock` is the number of units on
// sale. `counts` says how exactly the member "left" reflects the stock.
type receipts struct {
	stock  int64
	counts linear.Counts
}

// untrue describes a member of a receipt that cannot be true, or returns "". "left" must be between 0 and the
// stock. Unless `counts` is Unspecified, its upper limit is the stock minus the sale's own units. "waited_ms" must
// not exceed the time of the request. Both members must equal those of the record, if the record contains them.
func (of receipts) untrue(a buyers.Answer, record audit.Sale) string {
	n, most := noteOf(a), of.stock
	if of.counts != linear.Unspecified {
		most -= a.Units
	}
	took := a.End.Sub(a.Start)
	switch {
	case n.Left != nil && (*n.Left < 0 || *n.Left > most):
		return fmt.Sprintf("%d units are left of %d stocked", *n.Left, of.stock)
	case n.WaitedMS != nil && (*n.WaitedMS < 0 || time.Duration(*n.WaitedMS)*time.Millisecond > took+clockSlack):
		return fmt.Sprintf("it waited for %d ms, but the request took %d ms", *n.WaitedMS, took.Milliseconds())
	case n.Left != nil && record.Left != nil && *n.Left != *record.Left:
		return fmt.Sprintf("%d units are left, but the record says %d", *n.Left, *record.Left)
	case n.WaitedMS != nil && record.WaitedMS != nil && *n.WaitedMS != *record.WaitedMS:
		return fmt.Sprintf("it waited for %d ms, but the record says %d ms", *n.WaitedMS, *record.WaitedMS)
	}
	return ""
}

// judge judges the receipts, unless the verdict is already a break. `sales` is nil if the service does not
// show its records.
func (of receipts) judge(r *Result, answers []buyers.Answer, sales map[int64]audit.Sale) {
	if r.Verdict.IsBreak() {
		return
	}
	wrong, first := 0, ""
	for _, a := range answers {
		if a.Outcome != purchase.Sold {
			continue
		}
		if why := of.untrue(a, sales[a.ID]); why != "" {
			if wrong++; first == "" {
				first = fmt.Sprintf("%s was answered that %s", a.Purchaser, why)
			}
		}
	}
	switch {
	case wrong > 0:
		r.Verdict, r.Reason = verdict.Failed, fmt.Sprintf("%d receipts cannot be true: %s", wrong, first)
	case sales != nil && linear.Check(linear.Settle(buysOf(answers), sales), of.stock, of.counts, linear.Timeout) == linear.No:
		r.Verdict, r.Reason = verdict.Nonlinearizable, linear.NoOrder+"; "+r.Reason
	}
}

// buysOf returns the purchases with the times that the buyers measured. Each took effect between its two times.
func buysOf(answers []buyers.Answer) []linear.Buy {
	buys := make([]linear.Buy, len(answers))
	for i, a := range answers {
		buys[i] = linear.Buy{Purchaser: a.Purchaser, Amount: a.Units, Call: a.Start, Outcome: a.Outcome}
		if a.Outcome != purchase.Unknown {
			buys[i].Return, buys[i].Left = a.End, noteOf(a).Left
		}
	}
	return buys
}
