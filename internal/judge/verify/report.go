package verify

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Report is what `shop verify --json` writes.
type Report struct {
	Engine     string    `json:"engine"`            // "target" for a service that runs already
	Target     string    `json:"target,omitempty"`  // where it is
	Server     string    `json:"server,omitempty"`  // the database's product and version, of the local engine
	Redis      string    `json:"redis,omitempty"`   // its topology, of the local engine; "" for one server
	Command    string    `json:"command,omitempty"` // that made it, without the flags of its output
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

// marks is how the terminal shows a matrix, and a cell in a line.
func marks(colour bool) report.Look { return report.Look{Marks: true, Colour: colour} }

// Table writes the matrix for a person, and below it each cell that is not as
// promised.
func (r Report) Table(w io.Writer, colour bool) error {
	var b strings.Builder
	sorted := r.Sort()
	fmt.Fprintf(&b, "%s\n\n%s in %s: %s\n", r.matrix().Terminal(marks(colour)),
		explore.Count(len(r.Cells), "cell"), (time.Duration(r.DurationMS) * time.Millisecond).Round(time.Second), sorted.counts())
	for _, c := range slices.Concat(sorted.Broken, sorted.Failed, sorted.Void) {
		fmt.Fprintf(&b, "\n%s under %s: promised %s, seen %s\n  %s\n  %s\n", c.Strategy, c.Fault, orNothing(c.Promise), presented{&c}.shown(), c.Evidence, c.Replay)
		if c.DataRace != "" {
			fmt.Fprintln(&b, c.DataRace)
		}
		if c.Witness != nil {
			b.WriteString(c.Witness.Text)
		}
	}
	for _, left := range r.LeftOut {
		fmt.Fprintln(&b, "left out: "+left)
	}
	if r.Unfinished != "" {
		fmt.Fprintln(&b, "unfinished: "+r.Unfinished)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func orNothing(v verdict.Verdict) string {
	if v == "" {
		return "nothing"
	}
	return string(v)
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
