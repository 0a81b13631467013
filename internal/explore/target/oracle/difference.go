package oracle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Difference lists how the end of a schedule differs from the end of a serial run: that of the nearest order of the
// buyers.
type Difference struct {
	Order []int // the nearest order
	Rows  []DifferenceRow
}

// A DifferenceRow is a row that differs between the schedule and the serial run, or that only one of them has.
type DifferenceRow struct {
	Table        string // the table's name; "answer" for the answers to buyers
	This, Serial string // the row after the schedule and after the serial run; "" if there is none
	places       []string
	numbers      bool // This and Serial differ only in numbers
}

// size counts the rows that only one side has. A row that differs counts twice.
func (d *Difference) size() (n int) {
	for _, r := range d.Rows {
		if n++; r.This != "" && r.Serial != "" {
			n++
		}
	}
	return n
}

// String returns the nearest order: "buyer 2, then buyer 1".
func (d *Difference) String() string {
	if len(d.Order) == 0 {
		return "no buyer"
	}
	var all []string
	for _, b := range d.Order {
		all = append(all, fmt.Sprint("buyer ", b))
	}
	return strings.Join(all, ", then ")
}

// Places returns entries for `except` in oversell.yaml that would exclude the difference.
func (d *Difference) Places() (all []string) {
	for _, r := range d.Rows {
		all = append(all, r.places...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// MayAge reports whether all rows differ only in numbers. These may depend on the time of the run, as in 18:45.
func (d *Difference) MayAge() bool {
	return !slices.ContainsFunc(d.Rows, func(r DifferenceRow) bool { return !r.numbers })
}

// compare returns the difference between the form of a schedule's end (`one`) and that of a serial run's end (`other`);
// nil if they are equal.
func compare(one, other *form) *Difference {
	var d Difference
	tables := slices.Collect(maps.Keys(one.rows))
	for name := range other.rows {
		if one.rows[name] == nil {
			tables = append(tables, name)
		}
	}
	slices.Sort(tables)
	for _, name := range tables {
		this, serial := apart(one.rows[name], other.rows[name])
		for _, a := range this {
			r := DifferenceRow{Table: name, This: a.shown}
			if at := a.nearest(serial); at >= 0 {
				r.Serial, r.places, r.numbers = serial[at].shown, a.differs(serial[at]), withoutNumbers(a.text) == withoutNumbers(serial[at].text)
				serial = slices.Delete(serial, at, at+1)
			} else {
				r.places = []string{a.place}
			}
			d.Rows = append(d.Rows, r)
		}
		for _, b := range serial {
			d.Rows = append(d.Rows, DifferenceRow{Table: name, Serial: b.shown, places: []string{b.place}})
		}
	}
	if len(d.Rows) == 0 {
		return nil
	}
	// If a row has the same text on both sides, it differs only in the rows that reference it. It is enough to list those.
	if apart := slices.DeleteFunc(slices.Clone(d.Rows), func(r DifferenceRow) bool { return r.This == r.Serial }); len(apart) > 0 {
		d.Rows = apart
	}
	return &d
}

var digits = regexp.MustCompile(`\d+`)

func withoutNumbers(text string) string { return digits.ReplaceAllString(text, "0") }

// apart returns the lines that only one of the two lists has. Both lists are sorted.
func apart(a, b []line) (onlyA, onlyB []line) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].text < b[0].text:
			onlyA, a = append(onlyA, a[0]), a[1:]
		case len(a) == 0 || b[0].text < a[0].text:
			onlyB, b = append(onlyB, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return onlyA, onlyB
}

// nearest returns the index of the line with the most cells equal to l's; -1 if there are no lines.
func (l line) nearest(others []line) int {
	best, most := -1, -1
	for i, other := range others {
		equal := 0
		for c := range l.cells {
			if l.cells[c] == other.cells[c] {
				equal++
			}
		}
		if equal > most {
			best, most = i, equal
		}
	}
	return best
}

// differs returns the entries for `except` in oversell.yaml that would make two lines of one table equal.
func (l line) differs(other line) (places []string) {
	for c := range l.cells {
		if l.cells[c] != other.cells[c] {
			places = append(places, l.columns[c])
		}
	}
	return places
}

// varying returns the columns whose values differ between two runs of one order, although new generated keys and random
// values count as equal. Such a column contains a time, a counter of the program, or the like.
func (o *Oracle) varying(one, other Run) (all []string) {
	a, b := o.columns(one), o.columns(other)
	for place := range b {
		if _, both := a[place]; !both {
			a[place] = nil
		}
	}
	for place, values := range a {
		if !slices.Equal(slices.Sorted(slices.Values(values)), slices.Sorted(slices.Values(b[place]))) {
			all = append(all, place)
		}
	}
	return all
}

func (o *Oracle) columns(r Run) map[string][]string {
	all := map[string][]string{}
	for _, w := range o.rows(r, nil) {
		for i, c := range w.cells {
			value := c.text
			if w.table == answers {
				value = fmt.Sprint(w.cells[0].text, w.cells[1].text, " ", c.text) // of this buyer, in this place
			}
			all[w.columns[i]] = append(all[w.columns[i]], value)
		}
	}
	return all
}
