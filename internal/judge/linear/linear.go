// Package linear checks whether the stock of a product behaved as one counter that each buy
// touched at one moment between its call and its return. The audit compares sums; this package
// compares each buyer's answer, in the order of time.
package linear

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/purchase"
)

// A Result says whether some order of the buys explains their answers.
type Result string

// The results. A history that is too hard in the time given is Unknown, never Yes; "" means that
// there was nothing to check.
const (
	Yes     Result = "yes"
	No      Result = "no"
	Unknown Result = "unknown"
)

// NoOrder is what a history shows that is not linearizable.
const NoOrder = "no order of the buys explains what the buyers were told"

// Timeout is for one history; most take a few milliseconds.
const Timeout = 2 * time.Second

// most is how many operations are put in order. The search keeps a set of them for each state.
const most = 5_000

// A Buy is one operation on the counter.
type Buy struct {
	Purchaser    string
	Amount       int64     // units asked for; 0 is 1
	Call, Return time.Time // Return is zero when nobody saw it return: it may have happened at any time since
	Outcome      purchase.Outcome
	Left         *int64 // of a sale, as the buyer was answered
}

func (b Buy) units() int64 { return max(b.Amount, 1) }

// Counts is what a strategy's answers say of the stock.
type Counts int

// The kinds of counts. Of Unspecified nothing is checked.
const (
	Unspecified Counts = iota
	Exactly
	Admits
	Lags
)

// CountsOf returns what the answers of a strategy say, by its traits.
func CountsOf(admitsFirst, leftLags bool) Counts {
	switch {
	case admitsFirst:
		return Admits
	case leftLags:
		return Lags
	}
	return Exactly
}

// stockModel is a counter of units. A sale takes those that it asked for, which are
// there, and answers how many are left; sold out is answered when fewer are there; a buy
// of unknown fate takes them if they are there, or nothing. Since nobody saw it return it may also come
// after all others, where it changes nothing that anybody saw: so it may have
// happened or not.
//
// Admits is of a strategy that takes units before it is sure of the sale, and
// gives them back (Traits.AdmitsFirst), when its buyer goes or its database refuses. What it
// answers is its counter, in which units that such buyers hold are missing: left may
// be less than there is, and sold out is answered while one of them holds the last. It
// promises no more than that nobody buys what is not there.
//
// Lags is of a strategy whose left leaves out sales under way at the same moment
// (Traits.LeftLags): it may be more than there is. Sold out is not.
func stockModel(stock int64, counts Counts) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return stock },
		Step: func(state, _, output any) (bool, any) {
			units, b := state.(int64), output.(Buy)
			after := units - b.units()
			switch b.Outcome {
			case purchase.Sold:
				right := b.Left == nil || *b.Left == after || counts == Admits && *b.Left < after || counts == Lags && *b.Left > after
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
			b := output.(Buy)
			if b.Left != nil {
				return fmt.Sprintf("%s: %s, %d left", b.Purchaser, b.Outcome, *b.Left)
			}
			return fmt.Sprintf("%s: %s", b.Purchaser, b.Outcome)
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%d units", state) },
	}
}

// Check puts the buys in an order that a counter of stock units explains. Busy, lock_lost and failed
// have done nothing to the stock by their own word, which the audit checks, and are left out. It
// gives up after timeout.
func Check(buys []Buy, stock int64, counts Counts, timeout time.Duration) Result {
	if counts == Unspecified {
		return ""
	}
	kinds := []Counts{Exactly} // most histories are in order whatever the strategy promises
	if counts != Exactly {
		kinds = append(kinds, counts)
	}
	var found Result
	for _, kind := range kinds {
		if found = check(buys, stock, kind, timeout); found == Yes {
			return found
		}
	}
	return found
}

func check(buys []Buy, stock int64, counts Counts, timeout time.Duration) Result {
	all := operations(buys, counts)
	switch {
	case len(all) == 0:
		return ""
	case impossible(buys, stock, counts):
		return No
	case len(all) > most:
		return Unknown
	}
	switch porcupine.CheckOperationsTimeout(stockModel(stock, counts), all, timeout) {
	case porcupine.Ok:
		return Yes
	case porcupine.Illegal:
		return No
	}
	return Unknown
}

// Draw writes a page with the longest part of the buys that can be put in order.
func Draw(buys []Buy, stock int64, counts Counts, timeout time.Duration, file string) error {
	model := stockModel(stock, counts)
	_, info := porcupine.CheckOperationsVerbose(model, operations(buys, counts), timeout)
	return porcupine.VisualizePath(model, info, file)
}

func operations(buys []Buy, counts Counts) (all []porcupine.Operation) {
	for i, b := range buys {
		switch b.Outcome {
		case purchase.Sold, purchase.Unknown:
		case purchase.SoldOut:
			if counts == Admits {
				continue // it says nothing of the stock
			}
		default:
			continue
		}
		ret := int64(math.MaxInt64)
		if !b.Return.IsZero() {
			ret = b.Return.UnixNano()
		}
		all = append(all, porcupine.Operation{ClientId: i, Call: b.Call.UnixNano(), Return: ret, Output: b})
	}
	return all
}

// impossible is what needs no search: more sales than units, or two buyers
// with the same number left in their answers. The counter only goes down.
func impossible(buys []Buy, stock int64, counts Counts) bool {
	sold := int64(0)
	seen := map[int64]bool{}
	for _, b := range buys {
		if b.Outcome != purchase.Sold {
			continue
		}
		sold += b.units()
		if b.Left == nil || counts != Exactly {
			continue
		}
		if seen[*b.Left] {
			return true
		}
		seen[*b.Left] = true
	}
	return sold > stock
}

// Settle settles each buy of unknown fate by the records: a buyer that has one
// has bought, at some time since its call; one that has none has not. A buyer that is
// answered sold more often than it has records sent its order again: rush.Orders judges that.
func Settle(buys []Buy, sales map[int64]audit.Sale) (known []Buy) {
	recorded, told := map[string]int{}, map[string]int{}
	for _, s := range sales {
		recorded[s.Purchaser]++
	}
	for _, b := range buys {
		records := recorded[b.Purchaser]
		if b.Outcome == purchase.Unknown {
			if records == 0 {
				continue
			}
			b.Outcome = purchase.Sold
		}
		if b.Outcome == purchase.Sold {
			if told[b.Purchaser]++; records > 0 && told[b.Purchaser] > records {
				continue
			}
		}
		known = append(known, b)
	}
	return known
}
