// Package linear checks whether the stock of a product behaved as one counter. Each purchase (buy) must have
// touched the counter at one moment between its call and its return. The audit of a run compares only sums.
// This package checks every buyer's answer against the order of the buys in time.
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

// The results. A search that does not finish in time gives Unknown, never Yes. "" means that there was nothing
// to check.
const (
	Yes     Result = "yes"
	No      Result = "no"
	Unknown Result = "unknown"
)

// NoOrder is the reason of the verdict "nonlinearizable".
const NoOrder = "no order of the buys explains what the buyers were told"

// Timeout limits the check of one run. Most checks take a few milliseconds.
const Timeout = 2 * time.Second

// most is the maximum number of operations in a search: each state of the search stores a set of operations.
const most = 5_000

// A Buy is one operation on the counter.
type Buy struct {
	Purchaser    string
	Amount       int64     // ordered units; 0 means 1
	Call, Return time.Time // a zero Return: the buy had no answer and may take effect at any time after Call
	Outcome      purchase.Outcome
	Left         *int64 // units that remain after a sale, according to the shop's answer; nil if the answer does not say
	Reserved     int64  // units that other buys may have reserved when the shop refused this buy; the function Settle sets it
}

func (b Buy) units() int64 { return max(b.Amount, 1) }

// Counts says how exactly the answers of a strategy reflect the stock.
type Counts int

// The kinds of counts; stockModel describes the rules of each. For Unspecified, Check checks nothing.
const (
	Unspecified Counts = iota
	Exactly
	Admits
	Lags
	Reserves
)

// CountsOf returns the kind of counts of a strategy from three of its traits.
func CountsOf(admitsFirst, leftLags, writesLater bool) Counts {
	switch {
	case admitsFirst:
		return Admits
	case leftLags:
		return Lags
	case writesLater:
		return Reserves
	}
	return Exactly
}

// stockModel returns a model of the stock as one counter. A sale takes its units, which must be there, and
// answers how many are left. A buy answers sold out if too few units are left. A buy with an unknown outcome
// takes its units if they are there. A buy without an answer never ends. So the search may put it last, where
// it has no effect on the answers of other buyers.
//
// Admits applies to a strategy that takes units from its own counter before the sale is certain. It gives them back
// if the buyer leaves or the database refuses. Meanwhile the counter is too low: Left may be too small, and a buyer
// may be refused as sold out too early. So the model only requires that no sale takes units that are not there.
//
// Lags applies to a strategy whose Left still includes the units of sales in flight. Left may be too large,
// but a buyer is refused as sold out only if too few units are left.
//
// Reserves applies to a strategy that admits an order and writes it later. An admitted order reserves its
// units until it is written or the shop loses it. A lost order has an unknown outcome and no record. So a
// buyer may be refused as sold out while all units that are left are reserved.
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
				return after < 0 || counts == Reserves && after < b.Reserved, units
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

// Check reports whether some order of the buys explains their answers, for a counter that starts at `stock`.
// It leaves out buys answered busy, lock_lost or failed: they did not change the stock, which the audit
// checks. The result is Unknown after the timeout.
func Check(buys []Buy, stock int64, counts Counts, timeout time.Duration) Result {
	if counts == Unspecified {
		return ""
	}
	kinds := []Counts{Exactly} // most histories satisfy the strictest rules
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

// Draw writes an HTML page to the file. The page shows the longest sequence of buys that some order explains.
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
				continue // another buyer may have reserved the units, so the answer says nothing about the stock
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

// impossible reports, without a search, that no order can exist. This is so if more units were sold than
// stocked, or if two sales have the same Left although the counter only goes down.
func impossible(buys []Buy, stock int64, counts Counts) bool {
	sold := int64(0)
	seen := map[int64]bool{}
	for _, b := range buys {
		if b.Outcome != purchase.Sold {
			continue
		}
		sold += b.units()
		if b.Left == nil || counts == Admits || counts == Lags {
			continue
		}
		if seen[*b.Left] {
			return true
		}
		seen[*b.Left] = true
	}
	return sold > stock
}

// Settle uses the records to decide each buy with an unknown outcome. If the buyer has a record, the buy becomes a
// sale at some time after Call. Otherwise Settle drops the buy; it may have reserved units. So Settle adds these
// units to Reserved of each buy that was later refused as sold out. If a buyer has more answers "sold" than
// records, Settle drops the surplus answers: they repeat an order, and rush.RepeatedOrders judges them.
func Settle(buys []Buy, sales map[int64]audit.Sale) (known []Buy) {
	recorded, told := map[string]int{}, map[string]int{}
	var dropped []Buy
	for _, s := range sales {
		recorded[s.Purchaser]++
	}
	for _, b := range buys {
		records := recorded[b.Purchaser]
		if b.Outcome == purchase.Unknown {
			if records == 0 {
				dropped = append(dropped, b)
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
	for i, b := range known {
		for _, d := range dropped {
			if b.Outcome == purchase.SoldOut && d.Call.Before(b.Return) {
				known[i].Reserved += d.units()
			}
		}
	}
	return known
}
