package witness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/plural"
)

// A Folded is the short form of a witness: only the steps that concern the violation, in few rows.
type Folded struct {
	Rows []Row
	// Omitted is the number of omitted commands, by buyer; nil if there are none.
	Omitted map[int]int
}

// A Row is a sequence of consecutive steps of one buyer, or an event.
type Row struct {
	First, Last int    // numbers of its first and last step, from 1
	Steps       []Step // in their short form; a step "... N more commands" stands for N omitted steps
}

// Number returns the numbers of the row's steps as text: "3" or "3-17".
func (r Row) Number() string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// last returns the last step of the row. Its Watched values are those after the whole row.
func (r Row) last() Step { return r.Steps[len(r.Steps)-1] }

// Buyer returns the buyer of the row; 0 if it is an event without a buyer.
func (r Row) Buyer() int { return r.Steps[0].Buyer }

// PeopleRows returns the rows that the user sees: the short form. With Verbose, or if there is no short form, each
// step is one row.
func (w *Witness) PeopleRows() (all []Row) {
	if w.Folded != nil && !w.Verbose {
		return w.Folded.Rows
	}
	for i, s := range w.Steps {
		all = append(all, Row{First: i + 1, Last: i + 1, Steps: []Step{w.full(s)}})
	}
	return all
}

// full returns the step; with Verbose, its command and answer are complete.
func (w *Witness) full(s Step) Step {
	if !w.Verbose {
		return s
	}
	if s.Whole != "" {
		s.Command = s.Whole
	}
	if strings.HasSuffix(s.Result, "...") && len(s.Rows) > 0 {
		s.Result = RowsText(s.Rows, s.Unseen, nil)
	}
	return s
}

// RowsText returns the rows of an answer in one line. The function `pick` chooses the cells of a row; nil means
// all cells.
func RowsText(rows [][]Cell, unseen int, pick func([]Cell) []Cell) string {
	var all []string
	for _, row := range rows {
		if pick != nil {
			row = pick(row)
		}
		var cells []string
		for _, c := range row {
			cells = append(cells, c.String())
		}
		all = append(all, strings.Join(cells, " "))
	}
	if unseen > 0 {
		all = append(all, fmt.Sprintf("... %d more rows", unseen))
	}
	return strings.Join(all, "; ")
}

// String returns column=value. It quotes a value that is empty or contains spaces.
func (c Cell) String() string {
	value := c.Value
	if value == "" || strings.ContainsAny(value, " ;\t\r\n") {
		value = "'" + value + "'"
	}
	if c.Column == "" {
		return value
	}
	return c.Column + "=" + value
}

// Omission returns one line with the number of omitted commands; "" if none are omitted.
func (w *Witness) Omission() string {
	if w.Folded == nil || w.Verbose || len(w.Folded.Omitted) == 0 {
		return ""
	}
	var counts []string
	total := 0
	for buyer, n := range w.Folded.Omitted {
		counts = append(counts, fmt.Sprintf("%d of buyer %d", n, buyer))
		total += n
	}
	slices.SortFunc(counts, func(a, b string) int {
		return strings.Compare(a[strings.LastIndex(a, " "):], b[strings.LastIndex(b, " "):])
	})
	return fmt.Sprintf("left out: %s (%s) on tables and keys that neither the broken rule nor another buyer's writes touch; --verbose shows them", plural.Count(total, "command"), strings.Join(counts, ", "))
}
