package fold

import (
	"cmp"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/witness"
)

// Widths in characters.
const (
	shortAnswer  = 60  // an answer of at most this width is not shortened
	longestRow   = 100 // maximum width of a row's chosen columns
	unpickedRow  = 40  // maximum width of a row if no column was chosen
	andMoreCells = "..."
)

// A picker chooses the columns of an answer that the short form shows. First come the columns that the broken rule or
// the query `watch` names, then those that an UPDATE in the witness assigns.
type picker struct {
	first, second map[string]bool // columns in lower case
}

// newPicker collects the columns from a run. The entry hidden[i] says whether step i is hidden.
func newPicker(r Run, hidden []bool) *picker {
	p := &picker{first: map[string]bool{}, second: map[string]bool{}}
	for _, f := range r.Findings {
		for _, name := range effect.Mentions(f.Query, effect.MySQL).Names {
			p.first[name] = true
		}
		for _, name := range effect.Mentions(f.Query, effect.Postgres).Names {
			p.first[name] = true
		}
	}
	for _, name := range r.Watch {
		p.first[strings.ToLower(name)] = true
	}
	for i, s := range r.Steps {
		d, sql := effect.DialectOf(s.Server)
		if !sql || hidden[i] {
			continue
		}
		for _, name := range effect.Shorten(cmp.Or(s.Whole, s.Command), d, p.keep).Sets {
			p.second[name] = true
		}
	}
	return p
}

// keep reports whether the short form shows a column. The column's name must be in lower case.
func (p *picker) keep(column string) bool { return p.first[column] || p.second[column] }

// short returns a step with its command and answer shortened.
func (p *picker) short(s witness.Step) witness.Step {
	d, sql := effect.DialectOf(s.Server)
	if !sql {
		return s
	}
	mark, command := witness.CutMark(cmp.Or(s.Whole, s.Command))
	if strings.HasPrefix(command, "(message) ") {
		return s
	}
	b := effect.Shorten(command, d, p.keep)
	s.Command, s.Whole = mark+b.Text, ""
	if len(s.Rows) == 0 || len([]rune(s.Result)) <= shortAnswer {
		return s
	}
	s.Result = witness.RowsText(s.Rows, s.Unseen, func(row []witness.Cell) []witness.Cell { return p.pick(row, b.Columns) })
	return s
}

// pick returns the cells of a row that the short form shows. A SELECT may rename columns, so the map `named` has, for
// each column of the answer, its name in the table.
func (p *picker) pick(row []witness.Cell, named map[string]string) (shown []witness.Cell) {
	count := map[string]int{}
	name := func(c witness.Cell) string { return cmp.Or(named[strings.ToLower(c.Column)], c.Column) }
	for _, c := range row {
		count[name(c)]++
	}
	width := 0
	chosen := map[int]bool{}
	choose := func(most int, wanted func(column string) bool) {
		for i, c := range row {
			if !chosen[i] && wanted(strings.ToLower(name(c))) && width+len(c.Value) < most {
				chosen[i] = true
				width += len(name(c)) + len(c.Value) + 2
			}
		}
	}
	choose(longestRow, func(column string) bool { return p.first[column] })
	choose(longestRow, func(column string) bool { return p.second[column] })
	if len(chosen) == 0 {
		choose(unpickedRow, func(string) bool { return true })
	}
	for i, c := range row {
		if chosen[i] {
			if count[name(c)] == 1 {
				c.Column = name(c)
			}
			shown = append(shown, c)
		}
	}
	if len(shown) < len(row) && len(shown) == 0 {
		shown = append(shown, witness.Cell{Value: andMoreCells})
	}
	return shown
}
