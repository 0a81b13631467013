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
	ID         int64     // id of the sale's record
	Start      time.Time // the buy was in flight from Start to End; zero if unknown
	End        time.Time
	IsDeferred bool // refused, and the run ended before its Retry-After
	Status     int  // of the HTTP response; 0 if there was none
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

	Left, WaitedMS *int64 // the values of the receipt; nil if the record does not show them
}

// Compare compares the answers with the records, by record id.
//
// lost counts the receipts without a record. A record matches one receipt, of the same buyer and
// with the same units. untold counts the records whose buyer did not get that sale as an answer:
// the buyer was refused, or got the receipt of another record. A buyer answered Unknown may have a
// record or not.
func Compare(answers []Answer, sales map[int64]Sale) (lost, untold int64) {
	claimed := map[int64]bool{}
	spare := map[string]int64{} // by buyer: records that it may have in addition to those of its receipts
	for _, a := range answers {
		spare[a.Purchaser] += 0
		switch a.Outcome {
		case purchase.Sold:
			sale := sales[a.ID]
			if claimed[a.ID] || sale.Purchaser != a.Purchaser || sale.Amount != a.units() {
				lost++
			}
			if sale.Purchaser == a.Purchaser { // a database that has lost a sale assigns its id to the next sale
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

// Overlap returns the largest number of concurrent buys during a sale, or during a buy that may
// have been a sale. Concurrent refusals after the last sale prove nothing.
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
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.delta, b.delta)) // at a tie the end comes first
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

// A reservations knows the orders that ended without a sale and without the answer sold out. They
// may have reserved units and given them back. Each list is in order of time; its units are the sum
// up to that time.
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

// during returns the number of units that other buyers may have reserved while the shop refused
// one as sold out. It returns 0 if the refusal has no times.
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

// Count adds the answers to the evidence. e.Sums must be set. A refusal may have been correct if
// the order was for more units than are left at the end, or if others had reserved those units.
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
	if e.Sold+e.SoldOut > 0 { // the shop serves such requests, so a rejection is an error
		e.Failed += rejected
	} else {
		e.Unanswered += rejected
	}
}

// IsError reports whether the answer is an error of the shop itself. A shop answers 503 if one of
// its servers is unavailable, and 4xx or 501 if it does not know the request.
func (a Answer) IsError() bool {
	return a.Outcome == purchase.Failed && (a.Status == http.StatusOK ||
		a.Status >= http.StatusInternalServerError && a.Status != http.StatusNotImplemented && a.Status != http.StatusServiceUnavailable)
}
