package verify

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
)

// A Report is what `shop verify --json` writes.
type Report struct {
	Engine     string    `json:"engine"`           // "target" for a service that runs already
	Target     string    `json:"target,omitempty"` // where it is
	Server     string    `json:"server,omitempty"` // the database's product and version, of the local engine
	Started    time.Time `json:"started"`
	DurationMS int64     `json:"duration_ms"`
	Cells      []Cell    `json:"cells"`
	LeftOut    []string  `json:"left_out,omitempty"`   // what could not run here, and why
	Unfinished string    `json:"unfinished,omitempty"` // why there are no more cells, "" when all were played
	OK         bool      `json:"ok"`
}

// Unfinish notes that cells are missing: those that are there prove nothing of them.
func (r *Report) Unfinish(why string) { r.Unfinished, r.OK = why, false }

// Finish sets what follows from the cells.
func (r *Report) Finish() {
	r.DurationMS = time.Since(r.Started).Milliseconds()
	r.OK = len(r.Cells) > 0
	for _, c := range r.Cells {
		r.OK = r.OK && c.OK
	}
}

// Sorted are the cells by what they came to: as promised, in contradiction to the
// promise, with nothing shown, and with an instrument that failed.
type Sorted struct{ Kept, Broken, Void, Failed []Cell }

// Sort finds them.
func (r Report) Sort() (s Sorted) {
	for _, c := range r.Cells {
		switch {
		case c.HarnessError != "":
			s.Failed = append(s.Failed, c)
		case c.Verdict == verdict.Inconclusive:
			s.Void = append(s.Void, c)
		case !c.OK:
			s.Broken = append(s.Broken, c)
		default:
			s.Kept = append(s.Kept, c)
		}
	}
	return s
}

// free counts those of which nothing is promised: they are as promised whatever they show.
func (s Sorted) free() (n int) {
	for _, c := range s.Kept {
		if c.Promise == "" {
			n++
		}
	}
	return n
}

// counts is how many cells came to what, in words.
func (s Sorted) counts() string {
	free := s.free()
	text := fmt.Sprintf("%d as promised, %d contradict, %d inconclusive", len(s.Kept)-free, len(s.Broken), len(s.Void))
	if free > 0 {
		text += fmt.Sprintf(", %d without a promise", free)
	}
	if n := len(s.Failed); n > 0 {
		text += fmt.Sprintf(", %s of the harness", explore.Count(n, "error"))
	}
	return text
}

// LeaveOut notes what could not run here, once.
func (r *Report) LeaveOut(text string) {
	if !slices.Contains(r.LeftOut, text) {
		r.LeftOut = append(r.LeftOut, text)
	}
}

// cell finds one; nil when there is none.
func (r Report) cell(strategy string, fault promise.Condition) *Cell {
	i := slices.IndexFunc(r.Cells, func(c Cell) bool { return c.Strategy == strategy && c.Fault == fault })
	if i < 0 {
		return nil
	}
	return &r.Cells[i]
}

// word is a cell in the matrix: its verdict, with a mark where it is not the one
// promised.
func (c Cell) word() string {
	switch {
	case c.OK:
		return c.counted()
	case c.Verdict == verdict.Inconclusive && c.HarnessError == "":
		return "? " + c.counted()
	}
	return "! " + c.counted()
}

// Table writes the matrix for a person, and below it each cell that is not as
// promised.
func (r Report) Table(w io.Writer, colour bool) error {
	t := table.NewWriter()
	strategies, faults := axes(r.Cells)
	header := table.Row{"strategy"}
	for _, f := range faults {
		header = append(header, string(f))
	}
	t.AppendHeader(header)
	for _, s := range strategies {
		row := table.Row{s}
		for _, f := range faults {
			word := ""
			if c := r.cell(s, f); c != nil {
				word = paint(*c, colour)
			}
			row = append(row, word)
		}
		t.AppendRow(row)
	}
	sorted := r.Sort()
	if _, err := fmt.Fprintf(w, "%s\n\n%s in %s: %s\n",
		rush.Draw(t), explore.Count(len(r.Cells), "cell"), (time.Duration(r.DurationMS) * time.Millisecond).Round(time.Second), sorted.counts()); err != nil {
		return err
	}
	for _, c := range slices.Concat(sorted.Broken, sorted.Failed, sorted.Void) {
		if _, err := fmt.Fprintf(w, "\n%s under %s: promised %s, seen %s\n  %s\n  %s\n", c.Strategy, c.Fault, orNothing(c.Promise), c.shown(), c.Evidence, c.Replay); err != nil {
			return err
		}
		if c.DataRace != "" {
			if _, err := fmt.Fprintln(w, c.DataRace); err != nil {
				return err
			}
		}
		if c.Witness != nil {
			if _, err := io.WriteString(w, c.Witness.Text); err != nil {
				return err
			}
		}
	}
	for _, left := range r.LeftOut {
		if _, err := fmt.Fprintln(w, "left out: "+left); err != nil {
			return err
		}
	}
	if r.Unfinished != "" {
		_, err := fmt.Fprintln(w, "unfinished: "+r.Unfinished)
		return err
	}
	return nil
}

func orNothing(v verdict.Verdict) string {
	if v == "" {
		return "nothing"
	}
	return string(v)
}

// paint: green is as promised and holds, grey is as promised and breaks, red
// contradicts, yellow has shown nothing.
func paint(c Cell, colour bool) string {
	switch word := c.word(); {
	case !colour:
		return word
	case c.HarnessError != "":
		return text.FgRed.Sprint(word)
	case c.Verdict == verdict.Inconclusive:
		return text.FgYellow.Sprint(word)
	case !c.OK:
		return text.FgRed.Sprint(word)
	case c.Verdict == verdict.Holds:
		return text.FgGreen.Sprint(word)
	default:
		return text.Faint.Sprint(word)
	}
}

// axes are the matrix's: rows as in the catalogue, columns as in the list of faults.
func axes(cells []Cell) (strategies []string, faults []promise.Condition) {
	for _, c := range cells {
		if !slices.Contains(strategies, c.Strategy) {
			strategies = append(strategies, c.Strategy)
		}
		if !slices.Contains(faults, c.Fault) {
			faults = append(faults, c.Fault)
		}
	}
	all := promise.Columns()
	slices.SortFunc(faults, func(a, b promise.Condition) int { return cmp.Compare(slices.Index(all, a), slices.Index(all, b)) })
	return strategies, faults
}
