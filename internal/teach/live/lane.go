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
	maxCells   = 500    // cells of a shelf
	exactStock = 20_000 // units that are tracked one by one
	maxMarks   = 400    // answers that a lane shows one by one
	maxTimes   = 10_000 // purchases whose duration is kept
	maxNames   = 3      // holders that are shown by name
	maxPast    = 128    // released locks that are kept, to find locks held at the same time

	inFlight = 100 * time.Millisecond // maximum delay of an event from a child process
)

// A Lane is the page's picture of one strategy that sells one product. It has a shelf that shows units sold
// twice, the lock's holder, the waiting buyers, and the answers.
type Lane struct {
	Product  string `json:"product"`
	Strategy string `json:"strategy"`

	Stocked int64 `json:"stocked"`  // units put on sale; 0: unknown, since the restock was before this shop's start
	PerCell int64 `json:"per_cell"` // units in one cell of the shelf

	// Cells is the shelf with one character for each cell. ".": nothing is sold, "-": a part is
	// sold, "1": all is sold, "2" to "9": a unit was sold that many times.
	Cells string `json:"cells"`
	// Twice is the number of sales of a unit that was already sold. The remaining stock in a receipt
	// identifies the unit. If receipts do not identify units, Twice counts sales beyond the stock.
	Twice   int64  `json:"twice"`
	Units   int64  `json:"units"`   // units sold
	Records int64  `json:"records"` // number of sales
	Left    *int64 `json:"left"`    // units left, as the last receipt reported; null: none yet

	Outcomes map[string]int64 `json:"outcomes"`
	// Marks are the last answers in order, a letter each. It is the first letter of the outcome, except "n" for
	// sold out (none left) and "2" for a unit that was already sold.
	Marks string `json:"marks"`

	Inside      int      `json:"inside"` // buyers without an answer
	Waiting     int      `json:"waiting"`
	Holding     int      `json:"holding"`
	Holders     []string `json:"holders"` // the names of some holders
	MostHolders int      `json:"most_holders"`
	Locks       bool     `json:"locks"`       // whether the strategy reports a lock
	LeasesLost  int      `json:"leases_lost"` // leases known to be lost
	P50MS       float64  `json:"p50_ms"`      // duration of purchases, inside the shop
	P99MS       float64  `json:"p99_ms"`
}

// lane turns events into a Lane. It is not safe for concurrent use.
type lane struct {
	Lane
	exact   bool // receipts state the exact remaining stock, which identifies the sold unit
	sold    []uint8
	next    int64 // the first unit that may be unsold, if receipts do not identify units
	marks   []mark
	called  map[string]time.Time // time of the call, by purchaser
	waiting map[string]bool
	holding map[string]held // by purchaser and token
	past    []held          // the most recently released locks
	last    time.Time       // time of the latest event
	times   []time.Duration

	ended  bool // the next event empties the lane first
	staged bool // the lane belongs to a running burst of buyers
	frozen bool // events do not change it

	version uint64          // the hub's version at the lane's last change
	drawn   json.RawMessage // the picture at that version; nil: not drawn yet
}

// held is a lock that a buyer has or had.
type held struct {
	purchaser string
	from, to  time.Time // to is zero while the buyer has it
}

func (h held) at(t time.Time) bool { return !t.Before(h.from) && t.Before(h.to) }

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

// empty resets the lane with the given stock.
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

// gaveBack records that a buyer has released its lock, and counts how many buyers held the lock at the same
// time. Events of several processes arrive out of order, but their times come from one clock. So gaveBack
// compares the times of this lock with those of locks that were released before.
func (l *lane) gaveBack(holder string, at time.Time) {
	h, ok := l.holding[holder]
	if !ok {
		return
	}
	delete(l.holding, holder)
	h.to = at
	l.MostHolders = max(l.MostHolders, 1+l.heldAt(h.from))
	for _, other := range l.past { // the number is highest at a moment when a buyer got the lock
		if h.at(other.from) {
			l.MostHolders = max(l.MostHolders, 1+l.heldAt(other.from))
		}
	}
	if l.past = append(l.past, h); len(l.past) > maxPast {
		l.past = slices.Clone(l.past[len(l.past)-maxPast/2:])
	}
}

func (l *lane) heldAt(t time.Time) (n int) {
	for _, h := range l.past {
		if h.at(t) {
			n++
		}
	}
	return n
}

// holders returns the buyers that have the lock now, in the order in which they got it. If the next buyer got
// the lock just now, holders omits the earlier one: the event of its release may be on its way.
func (l *lane) holders() (names []string) {
	all := slices.SortedFunc(maps.Values(l.holding), func(a, b held) int { return a.from.Compare(b.from) })
	for i, h := range all {
		if i == len(all)-1 || l.last.Sub(all[i+1].from) > inFlight {
			names = append(names, h.purchaser)
		}
	}
	return names
}

func (l *lane) answered(e history.Event) {
	delete(l.waiting, e.Purchaser)
	if called, ok := l.called[e.Purchaser]; ok {
		delete(l.called, e.Purchaser)
		if len(l.times) < maxTimes {
			l.times = append(l.times, e.At.Sub(called))
		}
	}
	if e.Kind == history.Replay { // the original sale was counted already
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

// mark inserts an answer by its time, since answers of several processes arrive out of order.
func (l *lane) mark(m mark) {
	i := len(l.marks)
	for i > 0 && l.marks[i-1].at.After(m.at) {
		i--
	}
	if l.marks = slices.Insert(l.marks, i, m); len(l.marks) > 2*maxMarks {
		l.marks = slices.Clone(l.marks[len(l.marks)-maxMarks:])
	}
}

// sell takes the units of a sale off the shelf and returns how many of them were already sold. If L
// units are left after a sale of n units, the sale took the n units above L. Two sales with the
// same L have sold the same units.
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
	case l.sold == nil: // only sales beyond the stock are known
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
			twice++ // the sale is beyond the stock
			continue
		}
		if l.sold[unit] > 0 {
			twice++
		}
		l.sold[unit] = min(l.sold[unit]+1, 9)
	}
	return twice
}

// settle forgets the buyers without an answer, since buyers of a killed process never get one.
func (l *lane) settle() {
	clear(l.called)
	clear(l.waiting)
	clear(l.holding)
}

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
		if l.sold == nil { // the shelf shows sales from the first unit on
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
