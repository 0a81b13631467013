package verify

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/plural"
)

// A Report is the result of `shop verify`, as --json writes it.
type Report struct {
	Engine     string    `json:"engine"`            // "target" for a running service
	Target     string    `json:"target,omitempty"`  // address of the running service
	Server     string    `json:"server,omitempty"`  // product and version of the database, if this program started it
	Redis      string    `json:"redis,omitempty"`   // topology of Redis, if this program started it; "" for one server
	Command    string    `json:"command,omitempty"` // command of the run, without its output flags
	Started    time.Time `json:"started"`
	DurationMS int64     `json:"duration_ms"`
	Cells      []Cell    `json:"cells"`
	LeftOut    []string  `json:"left_out,omitempty"`   // skipped conditions and strategies, with the reasons
	Unfinished string    `json:"unfinished,omitempty"` // why cells are missing; "" if the run is complete
	OK         bool      `json:"ok"`
}

// Unfinish marks the report as incomplete. The present cells say nothing about the missing ones.
func (r *Report) Unfinish(why string) { r.Unfinished, r.OK = why, false }

// Finish computes the fields that depend on the cells.
func (r *Report) Finish() {
	r.DurationMS = time.Since(r.Started).Milliseconds()
	r.OK = len(r.Cells) > 0
	for _, c := range r.Cells {
		r.OK = r.OK && c.OK
	}
}

// Sorted groups the cells by result: as promised, contradicting the promise, inconclusive, and without a
// verdict because the test itself failed.
type Sorted struct{ Kept, Broken, Void, Failed []Cell }

// Sort sorts the cells.
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

// free counts the cells in Kept that have no promise, so that any result is right.
func (s Sorted) free() (n int) {
	for _, c := range s.Kept {
		if c.Promise == "" {
			n++
		}
	}
	return n
}

func (s Sorted) counts() string {
	free := s.free()
	text := fmt.Sprintf("%d as promised, %d contradict, %d inconclusive", len(s.Kept)-free, len(s.Broken), len(s.Void))
	if free > 0 {
		text += fmt.Sprintf(", %d without a promise", free)
	}
	if n := len(s.Failed); n > 0 {
		text += fmt.Sprintf(", %s of the harness", plural.Count(n, "error"))
	}
	return text
}

// ForgetHistories removes the paths of history files and pictures. The caller has deleted these files.
func (r *Report) ForgetHistories() {
	for i := range r.Cells {
		r.Cells[i].History, r.Cells[i].Picture = "", ""
	}
}

// leaveOutRows adds one line to LeftOut with the strategies that have no cell and are in no other line. The
// function `has` reports whether a strategy has a cell. If no strategy has one, leaveOutRows adds nothing:
// other lines give the reason.
func (r *Report) leaveOutRows(strategies []Strategy, has func(name string) bool) {
	named := map[string]bool{}
	for _, line := range r.LeftOut {
		names, _, _ := strings.Cut(line, ":")
		for _, name := range strings.FieldsFunc(names, func(c rune) bool { return c == ' ' || c == ',' }) {
			named[name] = true
		}
	}
	var without []string
	any := false
	for _, s := range strategies {
		any = any || has(s.Name)
		if !has(s.Name) && !named[s.Name] {
			without = append(without, s.Name)
		}
	}
	if any && without != nil {
		r.LeaveOut(strings.Join(without, ", ") + ": not affected by what this run injects")
	}
}

// LeaveOut records a skipped condition or strategy, once.
func (r *Report) LeaveOut(text string) {
	if !slices.Contains(r.LeftOut, text) {
		r.LeftOut = append(r.LeftOut, text)
	}
}

func (r *Report) hasRow(strategy string) bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Strategy == strategy })
}

func (r Report) cell(strategy string, fault promise.Condition) *Cell {
	i := slices.IndexFunc(r.Cells, func(c Cell) bool { return c.Strategy == strategy && c.Fault == fault })
	if i < 0 {
		return nil
	}
	return &r.Cells[i]
}

func marks(colour bool) report.Look { return report.Look{Marks: true, Colour: colour} }

// Table prints the matrix, and below it each cell that is not as promised.
func (r Report) Table(w io.Writer, colour bool) error {
	var b strings.Builder
	sorted := r.Sort()
	fmt.Fprintf(&b, "%s\n\n%s in %s: %s\n", r.matrix().Terminal(marks(colour)),
		plural.Count(len(r.Cells), "cell"), (time.Duration(r.DurationMS) * time.Millisecond).Round(time.Second), sorted.counts())
	for _, c := range slices.Concat(sorted.Broken, sorted.Failed, sorted.Void) {
		fmt.Fprintf(&b, "\n%s under %s: promised %s, seen %s\n  %s\n  %s\n", c.Strategy, c.Fault, orNothing(c.Promise), presented{&c}.shown(), c.Evidence, c.Replay)
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
	if r.OK {
		fmt.Fprintln(&b, r.covered())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// covered returns the last line of a run with exit code 0. It lists the cells that this exit code does not
// cover, and has a link to the page about its meaning.
func (r Report) covered() string {
	var missing []string
	if r.Engine == engine.Embedded {
		missing = append(missing, "any fault (only --engine local injects them)")
	}
	if n := len(r.LeftOut); n > 0 {
		missing = append(missing, fmt.Sprintf("the %d left out", n))
	}
	if missing == nil {
		return "what exit code 0 proves: " + report.Proof("verify")
	}
	return "exit code 0 does not cover " + strings.Join(missing, ", nor ") + "; what it proves: " + report.Proof("verify")
}

func orNothing(v verdict.Verdict) string {
	if v == "" {
		return "nothing"
	}
	return string(v)
}

// axes returns the rows, in the order of the catalogue, and the columns, in the order of faults.
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
