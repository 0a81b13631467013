package verify

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// Linearizable is whether the stock behaved as one counter that each buy touched
// at one moment between its call and its return. The audit compares sums; this
// compares each buyer's answer, in the order of time.
type Linearizable string

// The answers. A history that is too hard in the time given is Unknown, never
// Yes; "" is of a cell that has no history of this kind.
const (
	LinearYes     Linearizable = "yes"
	LinearNo      Linearizable = "no"
	LinearUnknown Linearizable = "unknown"
)

// linearTimeout is for one history; most take a few milliseconds.
const linearTimeout = 2 * time.Second

// A buy is one operation on the counter.
type buy struct {
	purchaser string
	amount    int64     // units asked for; 0 is 1
	call, ret time.Time // ret is zero when nobody saw it return: it may have happened at any time since
	outcome   purchase.Outcome
	left      *int64 // of a sale, as the buyer was answered
}

func (b buy) units() int64 { return max(b.amount, 1) }

// counts is what a strategy's answers say of the stock.
type counts int

const (
	exactly counts = iota
	admits
	lags
)

// stockModel is a counter of units. A sale takes those that it asked for, which are
// there, and answers how many are left; sold out is answered when fewer are there; a buy
// of unknown fate takes them if they are there, or nothing. Since nobody saw it return it may also come
// after all others, where it changes nothing that anybody saw: so it may have
// happened or not.
//
// admits is of a strategy that takes units before it is sure of the sale, and
// gives them back (Traits.AdmitsFirst), when its buyer goes or its database refuses. What it
// answers is its counter, in which units that such buyers hold are missing: left may
// be less than there is, and sold out is answered while one of them holds the last. It
// promises no more than that nobody buys what is not there.
//
// lags is of a strategy whose left leaves out sales under way at the same moment
// (Traits.LeftLags): it may be more than there is. Sold out is not.
func stockModel(stock int64, counts counts) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return stock },
		Step: func(state, _, output any) (bool, any) {
			units, b := state.(int64), output.(buy)
			after := units - b.units()
			switch b.outcome {
			case purchase.Sold:
				right := b.left == nil || *b.left == after || counts == admits && *b.left < after || counts == lags && *b.left > after
				return after >= 0 && right, after
			case purchase.SoldOut:
				return after < 0, units
			}
			if after < 0 {
				return true, units
			}
			return true, after
		},
		DescribeOperation: func(_, output any) string {
			b := output.(buy)
			if b.left != nil {
				return fmt.Sprintf("%s: %s, %d left", b.purchaser, b.outcome, *b.left)
			}
			return fmt.Sprintf("%s: %s", b.purchaser, b.outcome)
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%d units", state) },
	}
}

// checkLinear asks porcupine. Busy, lock_lost and failed have done nothing to the
// stock by their own word, which the audit checks, and are left out.
func checkLinear(buys []buy, stock int64, counts counts, timeout time.Duration) (Linearizable, porcupine.Model, porcupine.LinearizationInfo) {
	var operations []porcupine.Operation
	for i, b := range buys {
		switch b.outcome {
		case purchase.Sold, purchase.Unknown:
		case purchase.SoldOut:
			if counts == admits {
				continue // it says nothing of the stock
			}
		default:
			continue
		}
		ret := int64(math.MaxInt64)
		if !b.ret.IsZero() {
			ret = b.ret.UnixNano()
		}
		operations = append(operations, porcupine.Operation{ClientId: i, Call: b.call.UnixNano(), Return: ret, Output: b})
	}
	model := stockModel(stock, counts)
	if len(operations) == 0 {
		return "", model, porcupine.LinearizationInfo{}
	}
	result, info := porcupine.CheckOperationsVerbose(model, operations, timeout)
	switch {
	case result == porcupine.Ok:
		return LinearYes, model, info
	case result == porcupine.Illegal || impossible(buys, stock, counts):
		return LinearNo, model, info
	}
	return LinearUnknown, model, info
}

// impossible is what needs no search: more sales than units, or two buyers
// with the same number left in their answers. The counter only goes down.
func impossible(buys []buy, stock int64, counts counts) bool {
	sold := int64(0)
	seen := map[int64]bool{}
	for _, b := range buys {
		if b.outcome != purchase.Sold {
			continue
		}
		sold += b.units()
		if b.left == nil || counts != exactly {
			continue
		}
		if seen[*b.left] {
			return true
		}
		seen[*b.left] = true
	}
	return sold > stock
}

// buysIn reads the buys of a product in a history: what the shops saw of each, those
// that never returned included.
func buysIn(events []history.Event, product string) (buys []buy, stock int64) {
	events = slices.DeleteFunc(slices.Clone(events), func(e history.Event) bool { return e.Product != product })
	slices.SortStableFunc(events, func(a, b history.Event) int { return a.At.Compare(b.At) })
	open := map[string]int{}
	for _, e := range events {
		switch e.Kind {
		case history.Restocked: // stock and records start afresh
			buys, stock = nil, e.Amount
			clear(open)
		case history.Call:
			open[e.Purchaser] = len(buys)
			buys = append(buys, buy{purchaser: e.Purchaser, amount: e.Amount, call: e.At, outcome: purchase.Unknown})
		case history.Return:
			i, called := open[e.Purchaser]
			if !called {
				continue
			}
			delete(open, e.Purchaser)
			buys[i].outcome, buys[i].left = purchase.Outcome(e.Outcome), e.Left
			if buys[i].outcome != purchase.Unknown {
				buys[i].ret = e.At
			}
		}
	}
	return buys, stock
}

// settledBy settles each buy of unknown fate by the records: a buyer that has one
// has bought, at some time since its call; one that has none has not. A buyer that is
// answered sold more often than it has records sent its order again: rush.Orders judges that.
func settledBy(buys []buy, sales map[int64]audit.Sale) (known []buy) {
	recorded, told := map[string]int{}, map[string]int{}
	for _, s := range sales {
		recorded[s.Purchaser]++
	}
	for _, b := range buys {
		records := recorded[b.purchaser]
		if b.outcome == purchase.Unknown {
			if records == 0 {
				continue
			}
			b.outcome = purchase.Sold
		}
		if b.outcome == purchase.Sold {
			if told[b.purchaser]++; records > 0 && told[b.purchaser] > records {
				continue
			}
		}
		known = append(known, b)
	}
	return known
}

// noOrder is what a history shows that is not linearizable.
const noOrder = "no order of the buys explains what the buyers were told"

// linear checks the history of a cell. Stock and records that agree do not make up for answers
// that no order of the buys explains: the verdict says so. linear draws one that was not put in order
// beside the file of its events, where there is one: the longest part that was.
func (c *Cell) linear(buys []buy, stock int64) (err error) {
	found, model, info := checkLinear(buys, stock, exactly, linearTimeout)
	entry, _ := lockstrategy.ByName(c.Strategy)
	switch { // most of their histories are in order all the same
	case found == LinearYes:
	case entry.AdmitsFirst:
		found, model, info = checkLinear(buys, stock, admits, linearTimeout)
	case entry.LeftLags:
		found, model, info = checkLinear(buys, stock, lags, linearTimeout)
	}
	c.Linearizable = found
	if found == LinearNo && (c.Verdict == verdict.Holds || c.Verdict == verdict.Inconclusive && c.Promise == verdict.Holds) {
		c.Verdict, c.Reason = verdict.Nonlinearizable, noOrder+"; "+c.Reason
	}
	if found == LinearYes || found == "" || c.History == "" {
		return nil
	}
	c.Picture = strings.TrimSuffix(c.History, filepath.Ext(c.History)) + ".linear.html"
	return porcupine.VisualizePath(model, info, c.Picture)
}
