package room

import (
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/purchase"
)

// A sale lasts from one restock to the next. It counts how often each unit was sold. The methods that return
// views accept a nil *sale, which means that the room has no sale. The room's mutex guards a sale.
type sale struct {
	product         string
	strategy        Strategy
	stock           int64
	sold            int64          // units sold to phones
	salesPerUnit    map[int64]int  // number of sales of each unit
	oversoldRecords map[int64]bool // by record id: whether the purchase exceeded the stock; an answer with an id in this map is a repetition
	outcomes        map[purchase.Outcome]int
}

func newSale(productName string, s Strategy, units int64) *sale {
	return &sale{
		product: productName, strategy: s, stock: units,
		salesPerUnit: map[int64]int{}, oversoldRecords: map[int64]bool{}, outcomes: map[purchase.Outcome]int{},
	}
}

// count counts the answer to a press and returns the buyer's new result.
func (s *sale) count(before result, receipt purchase.Receipt, err error) result {
	res := result{outcome: purchase.OutcomeOf(err), units: before.units, presses: before.presses}
	beyond, again := s.oversoldRecords[receipt.ID]
	again = again && err == nil
	if !again {
		res.presses++
		s.outcomes[res.outcome]++
	}
	if err != nil {
		return res
	}
	if s.strategy.ReceiptShowsUnit {
		res.unit = s.stock - receipt.Left
	}
	if !again {
		res.units++
		s.sold++
		s.salesPerUnit[res.unit]++
		beyond = s.sold > s.stock // later presses do not change this value
		s.oversoldRecords[receipt.ID] = beyond
	}
	res.isOversold = beyond
	return res
}

type saleJSON struct {
	State     string `json:"state"` // empty, shut, opening, open
	OpensInMS int64  `json:"opens_in_ms"`
	Product   string `json:"product"`
	Strategy  string `json:"strategy"`
	Stock     int64  `json:"stock"`
	Sold      int64  `json:"sold"` // units sold to phones
}

type buyerJSON struct {
	Number  int              `json:"number"`
	Name    string           `json:"name"`    // as shown: "Ann (2)" if another Ann was first
	Waiting bool             `json:"waiting"` // whether a press is under way
	Outcome purchase.Outcome `json:"outcome"` // outcome of the last press; "" before the first
	Unit    int64            `json:"unit"`    // 0 if unknown
	Beyond  bool             `json:"beyond"`  // sold beyond the stock
	Times   int              `json:"times"`   // number of sales of the unit; 0 if the unit is unknown
	Units   int              `json:"units"`
	Presses int              `json:"presses"`
}

func (s *sale) view(d *door) saleJSON {
	if s == nil {
		return saleJSON{State: "empty"}
	}
	v := saleJSON{State: "shut", Product: s.product, Strategy: s.strategy.Name, Stock: s.stock, Sold: s.sold}
	switch {
	case d == nil:
	case d.isOpen():
		v.State = "open"
	default:
		v.State, v.OpensInMS = "opening", max(0, time.Until(d.opens).Milliseconds())
	}
	return v
}

func (s *sale) viewOf(b *buyer) buyerJSON {
	v := buyerJSON{
		Number: b.number, Name: b.displayName, Waiting: b.press != nil, Outcome: b.outcome, Unit: b.unit,
		Beyond: b.isOversold, Units: b.units, Presses: b.presses,
	}
	if s != nil && b.outcome == purchase.Sold && b.unit != 0 {
		v.Times = s.salesPerUnit[b.unit]
	}
	return v
}

// words describes the result of a press to a person.
func (s *sale) words(r result) string {
	switch {
	case r.outcome == "":
		return ""
	case r.outcome == purchase.Sold && r.units > 1:
		return fmt.Sprintf("%s You have %d now.", s.soldWords(r), r.units)
	case r.outcome == purchase.Sold:
		return s.soldWords(r)
	case r.units > 0:
		return fmt.Sprintf("%s You have %d from before.", refusalWords(r), r.units)
	}
	return refusalWords(r)
}

func refusalWords(r result) string {
	switch r.outcome {
	case purchase.SoldOut:
		return "Sold out. Others were faster; nothing is left."
	case purchase.Busy:
		return "Busy. Too many came at once and you gave up waiting: press again."
	case purchase.LockLost:
		return "Your lock ran out before the write, so nothing was sold to you: press again."
	case purchase.Unknown:
		return "It is not known whether you bought it. Press again: it is the same order, so you cannot buy twice."
	}
	if r.hungUp {
		return "Your phone left before the answer, and nothing was sold to you: press again."
	}
	return "That went wrong inside the shop, and nothing was sold to you. Its log says more."
}

func (s *sale) soldWords(r result) string {
	words := "You got one."
	if r.unit > 0 {
		words = fmt.Sprintf("You got unit %d of %d.", r.unit, s.stock)
		if others := s.salesPerUnit[r.unit] - 1; others == 1 {
			words += " Another buyer bought it too."
		} else if others > 1 {
			words += fmt.Sprintf(" So did %d others.", others)
		}
	}
	if s.sold > s.stock {
		words += fmt.Sprintf(" The shop sold more than it had: %d of %d.", s.sold, s.stock)
	}
	return words
}
