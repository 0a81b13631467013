package audit

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/purchase"
)

// An Answer is the answer to one buyer.
type Answer struct {
	Purchaser  string
	Units      int64 // ordered units; 0 means 1
	Outcome    purchase.Outcome
	ID         int64     // id of the sale's record in the database
	Start      time.Time // the purchase was in flight from Start to End; zero if unknown
	End        time.Time
	IsDeferred bool // the shop refused this buyer, and the buyer's Retry-After was not over when the run ended
	Status     int  // status code of the HTTP response; 0 if there was none
	IsLost     bool // the connection broke before the answer: the shop may have sold or not
}

func (a Answer) units() int64 { return max(a.Units, 1) }

// Demand returns the number of units that the buyers asked for.
func Demand(answers []Answer) (units int64) {
	for _, a := range answers {
		units += a.units()
	}
	return units
}

// A Sale is the part of a record that Compare uses.
type Sale struct {
	Purchaser string
	Amount    int64

	Left, WaitedMS *int64 // the values in the record, to compare with the receipt; nil if the record does not contain them
}

// Compare compares the answers with the records, by record id.
//
// The result `lost` is the number of receipts without a record of the same buyer and the same units. The
// result `untold` is the number of records of these buyers that no receipt names. A buyer that was answered
// purchase.Unknown may have one such record, and this record does not count as untold.
func Compare(answers []Answer, sales map[int64]Sale) (lost, untold int64) {
	claimed := map[int64]bool{}
	spare := map[string]int64{} // per buyer: how many records may exist without a receipt; each answer Unknown allows one
	for _, a := range answers {
		spare[a.Purchaser] += 0
		switch a.Outcome {
		case purchase.Sold:
			sale := sales[a.ID]
			if claimed[a.ID] || sale.Purchaser != a.Purchaser || sale.Amount != a.units() {
				lost++
			}
			if sale.Purchaser == a.Purchaser { // otherwise the database has lost this sale, and the id may belong to another buyer's sale
				claimed[a.ID] = true
			}
		case purchase.Unknown:
			spare[a.Purchaser]++
		}
	}
	for id, sale := range sales {
		allowed, asked := spare[sale.Purchaser]
		switch {
		case claimed[id] || !asked:
		case allowed == 0:
			untold++
		default:
			spare[sale.Purchaser]--
		}
	}
	return lost, untold
}

// Overlap returns the largest number of purchases in flight at the same time. It counts only moments with a
// sale or a possible sale: refusals after the last sale prove nothing.
func Overlap(answers []Answer) int {
	type edge struct {
		at    time.Time
		delta int
		sale  bool
	}
	edges := make([]edge, 0, 2*len(answers))
	for _, a := range answers {
		sale := a.Outcome == purchase.Sold || a.Outcome == purchase.Unknown
		edges = append(edges, edge{a.Start, 1, sale}, edge{a.End, -1, sale})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.delta, b.delta)) // at equal times, an end precedes a start
	})
	now, sales, most := 0, 0, 0
	for _, e := range edges {
		now += e.delta
		if e.sale {
			sales += e.delta
		}
		if sales > 0 {
			most = max(most, now)
		}
	}
	return most
}

// reservations lists the orders that may have reserved units and given them back. These are all orders except
// sales and those answered "sold out". Each list is sorted by time, and its units are cumulative.
type reservations struct{ begun, ended []unitsAt }

type unitsAt struct {
	at    time.Time
	units int64
}

func reservationsOf(answers []Answer) (r reservations) {
	for _, a := range answers {
		if a.Outcome != purchase.Sold && a.Outcome != purchase.SoldOut {
			r.begun = append(r.begun, unitsAt{a.Start, a.units()})
			r.ended = append(r.ended, unitsAt{a.End, a.units()})
		}
	}
	for _, list := range [][]unitsAt{r.begun, r.ended} {
		slices.SortFunc(list, func(a, b unitsAt) int { return a.at.Compare(b.at) })
		for i := 1; i < len(list); i++ {
			list[i].units += list[i-1].units
		}
	}
	return r
}

// during returns the number of units that other buyers may have reserved while the order `refused` was in
// flight. It returns 0 if the times of that order are unknown.
func (r reservations) during(refused Answer) int64 {
	before := func(list []unitsAt, t time.Time) int64 {
		if n, _ := slices.BinarySearchFunc(list, t, func(u unitsAt, t time.Time) int { return u.at.Compare(t) }); n > 0 {
			return list[n-1].units
		}
		return 0
	}
	if refused.End.IsZero() {
		return 0
	}
	return max(0, before(r.begun, refused.End)-before(r.ended, refused.Start.Add(1)))
}

// Count adds the answers to the evidence. e.Sums must be set. An answer "sold out" counts as Denied, except if
// too few units are left at the end, or other buyers may have reserved them.
func (e *Evidence) Count(answers []Answer) {
	var told, lost, rejected int64
	reserved := reservationsOf(answers)
	for _, a := range answers {
		switch a.Outcome {
		case purchase.Sold:
			e.Sold++
			told += a.units()
		case purchase.SoldOut:
			e.SoldOut++
			if a.units() <= e.Sums.Leftover-reserved.during(a) {
				e.Denied++
			}
		case purchase.Busy:
			e.Busy++
		case purchase.Unknown:
			if a.IsLost {
				e.Unheard++
				lost += a.units()
			} else {
				e.Unanswered++
				e.Doubtful += a.units()
			}
		case purchase.Failed:
			switch {
			case a.IsError():
				e.Failed++
			case a.Status == 0 || a.Status == http.StatusServiceUnavailable:
				e.Unanswered++
			default:
				rejected++
			}
		}
	}
	recorded := max(0, e.Sums.UnitsSold-told)
	e.Unread += max(0, lost-recorded)
	if e.Sold+e.SoldOut > 0 { // the shop answered others, so a rejection is an error
		e.Failed += rejected
	} else {
		e.Unanswered += rejected
	}
}

// IsError reports whether the answer is an error of the shop itself. 503 is none, since it means that a server
// is unavailable. 4xx and 501 are none, since they mean that the shop does not know the request.
func (a Answer) IsError() bool {
	return a.Outcome == purchase.Failed && (a.Status == http.StatusOK ||
		a.Status >= http.StatusInternalServerError && a.Status != http.StatusNotImplemented && a.Status != http.StatusServiceUnavailable)
}
