package live

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/load/quantile"
)

const (
	maxCells   = 500    // of a shelf
	exactStock = 20_000 // units whose sales are told apart
	maxMarks   = 400    // answers that a lane shows one by one
	maxTimes   = 10_000 // purchases whose time is kept
	maxNames   = 3      // holders that are named
	maxPast    = 128    // locks given back that others are compared with

	inFlight = 100 * time.Millisecond // what an event of a child may take
)

// A Lane is what the page draws of one strategy that sells one product: a shelf on which a
// unit that is sold twice is seen, who holds the lock, who waits, and what buyers were told.
type Lane struct {
	Product  string `json:"product"`
	Strategy string `json:"strategy"`

	Stocked int64 `json:"stocked"`  // units put on sale; 0: not known, the restock was before this shop's start
	PerCell int64 `json:"per_cell"` // units that a cell of the shelf stands for

	// Cells is the shelf, a character a cell: "." nothing is sold, "-" some of it, "1" all of
	// it, and "2" to "9" that a unit of it was sold so often.
	Cells string `json:"cells"`
	// Twice is how many sales were of a unit that was sold already: by what the sellers say
	// is left, or beyond the stock.
	Twice   int64  `json:"twice"`
	Units   int64  `json:"units"`   // sold
	Records int64  `json:"records"` // sales
	Left    *int64 `json:"left"`    // as the last seller saw it

	Outcomes map[string]int64 `json:"outcomes"`
	// Marks are the last answers, in their order, a letter each: the outcome's first, but
	// "n" for sold out (none left) and "2" for a unit that was sold already.
	Marks string `json:"marks"`

	Inside      int      `json:"inside"` // buyers that have called and have no answer
	Waiting     int      `json:"waiting"`
	Holding     int      `json:"holding"`
	Holders     []string `json:"holders"` // the first of them by name
	MostHolders int      `json:"most_holders"`
	Locks       bool     `json:"locks"`       // the strategy reports a lock
	LeasesLost  int      `json:"leases_lost"` // leases known to be gone
	P50MS       float64  `json:"p50_ms"`      // of purchases, inside the shop
	P99MS       float64  `json:"p99_ms"`
}

// lane folds events into a Lane. It is not safe for several goroutines.
type lane struct {
	Lane
	exact   bool // what a receipt says is left tells which unit was sold
	sold    []uint8
	next    int64 // the first unit that may be unsold, where they are not told apart
	marks   []mark
	called  map[string]time.Time // by purchaser
	waiting map[string]bool
	holding map[string]held // by purchaser and token
	past    []held          // the last that gave the lock back
	last    time.Time       // the latest event
	times   []time.Duration

	ended  bool // the next event begins anew
	staged bool // of a run that is under way
	frozen bool // no event changes it

	version uint64          // of the hub, at the last change
	drawn   json.RawMessage // the picture at that version; nil: not drawn yet
}

// held is a lock that somebody has or had.
type held struct {
	purchaser string
	from, to  time.Time // to is zero while it lasts
}

// at tells whether it was held then.
func (h held) at(t time.Time) bool { return !t.Before(h.from) && t.Before(h.to) }

// A mark is one answer.
type mark struct {
	at     time.Time
	letter byte
}

func newLane(product, strategy string, stocked int64, exact bool) *lane {
	l := &lane{exact: exact}
	l.Product, l.Strategy = product, strategy
	l.empty(stocked)
	return l
}

// empty begins anew with so many units.
func (l *lane) empty(stocked int64) {
	l.Lane = Lane{
		Product: l.Product, Strategy: l.Strategy, Stocked: stocked,
		PerCell: max(1, (stocked+maxCells-1)/maxCells), Outcomes: map[string]int64{},
	}
	l.sold, l.next, l.marks, l.times = nil, 0, nil, nil
	if stocked <= exactStock {
		l.sold = make([]uint8, stocked)
	}
	l.called, l.waiting, l.holding = map[string]time.Time{}, map[string]bool{}, map[string]held{}
	l.past, l.last = nil, time.Time{}
	l.ended = false
}

// take folds one event in.
func (l *lane) take(e history.Event) {
	if e.At.After(l.last) {
		l.last = e.At
	}
	holder := e.Purchaser + " " + e.Token
	switch e.Kind {
	case history.Call:
		l.called[e.Purchaser] = e.At
	case history.Waiting:
		l.Locks = true
		l.waiting[e.Purchaser] = true
	case history.Acquired:
		l.Locks = true
		delete(l.waiting, e.Purchaser)
		l.holding[holder] = held{purchaser: e.Purchaser, from: e.At}
		l.MostHolders = max(l.MostHolders, 1)
	case history.Released:
		l.gaveBack(holder, e.At)
	case history.Lost:
		l.gaveBack(holder, e.At)
		l.LeasesLost++
	case history.Replay, history.Return:
		l.answered(e)
	}
}

// gaveBack ends a hold, and counts who held beside it. The events of several processes do not
// come in the order in which things happened, but their times are of one clock: whether two
// held at once is known when both have ended.
func (l *lane) gaveBack(holder string, at time.Time) {
	h, ok := l.holding[holder]
	if !ok {
		return
	}
	delete(l.holding, holder)
	h.to = at
	l.MostHolders = max(l.MostHolders, 1+l.heldAt(h.from))
	for _, other := range l.past { // the most there were at once were there when one of them came
		if h.at(other.from) {
			l.MostHolders = max(l.MostHolders, 1+l.heldAt(other.from))
		}
	}
	if l.past = append(l.past, h); len(l.past) > maxPast {
		l.past = slices.Clone(l.past[len(l.past)-maxPast/2:])
	}
}

// heldAt counts those of the past who had the lock then.
func (l *lane) heldAt(t time.Time) (n int) {
	for _, h := range l.past {
		if h.at(t) {
			n++
		}
	}
	return n
}

// holders are those who have the lock now, in the order in which they got it. Another who got
// it just now may mean that the one before has given it back, and that this is not known yet.
func (l *lane) holders() (names []string) {
	all := slices.SortedFunc(maps.Values(l.holding), func(a, b held) int { return a.from.Compare(b.from) })
	for i, h := range all {
		if i == len(all)-1 || l.last.Sub(all[i+1].from) > inFlight {
			names = append(names, h.purchaser)
		}
	}
	return names
}

// answered is the end of a buy.
func (l *lane) answered(e history.Event) {
	delete(l.waiting, e.Purchaser)
	if called, ok := l.called[e.Purchaser]; ok {
		delete(l.called, e.Purchaser)
		if len(l.times) < maxTimes {
			l.times = append(l.times, e.At.Sub(called))
		}
	}
	if e.Kind == history.Replay { // the sale was counted when it was made
		return
	}
	l.Outcomes[e.Outcome]++
	letter := byte('?')
	if e.Outcome != "" {
		letter = e.Outcome[0]
	}
	switch {
	case e.Outcome == "sold_out":
		letter = 'n'
	case e.Amount > 0:
		if twice := l.sell(e); twice > 0 {
			l.Twice += twice
			letter = '2'
		}
	}
	l.mark(mark{e.At, letter})
}

// mark puts an answer where it belongs: those of several processes do not come in the order
// in which they were given.
func (l *lane) mark(m mark) {
	i := len(l.marks)
	for i > 0 && l.marks[i-1].at.After(m.at) {
		i--
	}
	if l.marks = slices.Insert(l.marks, i, m); len(l.marks) > 2*maxMarks {
		l.marks = slices.Clone(l.marks[len(l.marks)-maxMarks:])
	}
}

// sell takes the units of a sale off the shelf, and returns how many of them were sold
// already. A seller that saw left units after it sold n had those before them: two sellers
// that saw the same have sold the same.
func (l *lane) sell(e history.Event) (twice int64) {
	l.Records++
	before := l.Units
	l.Units += e.Amount
	if e.Left != nil {
		left := *e.Left
		l.Left = &left
	}
	switch {
	case l.Stocked == 0:
		return 0
	case l.sold == nil: // only what goes beyond the stock is known
		return max(0, l.Units-max(l.Stocked, before))
	}
	first := int64(-1)
	if l.exact && e.Left != nil {
		first = l.Stocked - *e.Left - e.Amount
	}
	for n := range e.Amount {
		unit := first + n
		if first < 0 {
			for l.next < l.Stocked && l.sold[l.next] > 0 {
				l.next++
			}
			unit = min(l.next, l.Stocked-1)
		}
		if unit >= l.Stocked {
			twice++ // beyond what there ever was
			continue
		}
		if l.sold[unit] > 0 {
			twice++
		}
		l.sold[unit] = min(l.sold[unit]+1, 9)
	}
	return twice
}

// settle forgets who is under way: the crowd is over, and who has no answer from a process
// that was killed will get none.
func (l *lane) settle() {
	clear(l.called)
	clear(l.waiting)
	clear(l.holding)
}

// picture is the lane as it is now.
func (l *lane) picture() Lane {
	p := l.Lane
	p.Outcomes = maps.Clone(l.Outcomes)
	p.Cells = l.cells()
	marks := make([]byte, 0, maxMarks)
	for _, m := range l.marks[max(0, len(l.marks)-maxMarks):] {
		marks = append(marks, m.letter)
	}
	p.Marks = string(marks)
	holders := l.holders()
	p.Inside, p.Waiting, p.Holding = len(l.called), len(l.waiting), len(holders)
	p.Holders = append([]string{}, holders[:min(len(holders), maxNames)]...)
	times := slices.Sorted(slices.Values(l.times))
	p.P50MS, p.P99MS = milliseconds(quantile.Of(times, 0.5)), milliseconds(quantile.Of(times, 0.99))
	return p
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// cells draws the shelf.
func (l *lane) cells() string {
	if l.Stocked == 0 {
		return ""
	}
	cells := make([]byte, 0, maxCells)
	for from := int64(0); from < l.Stocked; from += l.PerCell {
		to := min(from+l.PerCell, l.Stocked)
		some, all, most := false, true, uint8(0)
		for unit := from; unit < to && l.sold != nil; unit++ {
			some, all, most = some || l.sold[unit] > 0, all && l.sold[unit] > 0, max(most, l.sold[unit])
		}
		if l.sold == nil { // sold from the first on
			some, all, most = l.Units > from, l.Units >= to, 1
		}
		switch {
		case most > 1:
			cells = append(cells, '0'+most)
		case all:
			cells = append(cells, '1')
		case some:
			cells = append(cells, '-')
		default:
			cells = append(cells, '.')
		}
	}
	return string(cells)
}
