package result

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/plural"
)

// The groups of the document's cases, in reading order.
const (
	failing = iota
	errored
	unclear
	old
	holding
)

// Document returns the result as the document that every report format prints.
func (r Result) Document() report.Document {
	d := report.Document{
		Command: "shop ci", Title: "shop ci: " + r.Headline(), Lead: r.lead(),
		Started: r.Started, Took: time.Duration(r.Seconds * float64(time.Second)), Alarm: r.Unfinished,
		Groups: []report.Group{
			failing: {Heading: "Breaks"},
			errored: {Heading: "Could not run"},
			unclear: {Heading: "Inconclusive"},
			old:     {Heading: "Breaks, as in the baseline"},
			holding: {Heading: "Holds, or breaks as promised", Brief: true, Columns: [3]string{"check", "kind", "what was seen"}},
		},
		Value: r,
	}
	table := report.Table{Columns: report.Columns("check", "verdict", "against the baseline", "schedules", "seconds")}
	if r.Baseline == nil {
		table.Columns = slices.Delete(table.Columns, 2, 3)
	}
	for i := len(table.Columns) - 2; i < len(table.Columns); i++ {
		table.Columns[i].Numbers = true
	}
	for _, c := range r.Checks {
		one := r.caseOf(c)
		row := []report.Cell{{Text: c.Name, Code: true}, {Text: one.Word, Status: one.Status, Case: one.ID()}}
		if r.Baseline != nil {
			row = append(row, report.Cell{Text: string(c.Change)})
		}
		schedules := ""
		if c.Kind == Explore {
			schedules = fmt.Sprint(c.Schedules)
		}
		table.Rows = append(table.Rows, append(row, report.Texts(schedules, fmt.Sprintf("%.1f", c.Seconds))...))
		d.Cases = append(d.Cases, one)
	}
	if len(table.Rows) > 0 {
		d.Tables = []report.Table{table}
	}
	d.Notes = r.notes()
	return d
}

// Headline says in a few words how the run ended.
func (r Result) Headline() string {
	var parts []string
	fails, known, promised := 0, 0, 0
	for _, c := range r.With(Holds) {
		if c.Verdict != verdict.Holds {
			promised++
		}
	}
	for _, c := range r.With(Broken) {
		if r.Fails(c) {
			fails++
		} else {
			known++
		}
	}
	for _, p := range []struct {
		n    int
		what string
	}{
		{fails, "broken"},
		{len(r.With(Error)), "could not run"},
		{len(r.With(Inconclusive)), "inconclusive"},
		{known, strings.TrimPrefix(plural.Count(known, "known break"), fmt.Sprint(known, " ")) + " (in the baseline)"},
		{promised, "broken as promised"},
		{len(r.With(Holds)) - promised, "holds"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if parts == nil {
		return "no checks"
	}
	return strings.Join(parts, ", ")
}

func (r Result) lead() string {
	text := plural.Count(len(r.Checks), "check")
	if r.Shard != "" {
		text += " of shard " + r.Shard
	}
	if r.Commit != "" {
		text += " of commit " + short(r.Commit)
	}
	if b := r.Baseline; b != nil && b.Ignored == "" {
		text += ", compared with the baseline"
		if b.Commit != "" {
			text += " of commit " + short(b.Commit)
		}
	}
	return text
}

func (r Result) notes() []string {
	notes := slices.Clone(r.Notes)
	if b := r.Baseline; b != nil {
		if b.Ignored != "" {
			notes = append(notes, "The baseline was not used: "+b.Ignored+".")
		}
		if len(b.Gone) > 0 {
			notes = append(notes, "The baseline has checks that this run does not have: "+strings.Join(b.Gone, ", ")+".")
		}
	}
	return notes
}

func (r Result) caseOf(c Check) report.Case {
	one := c.Case
	one.Suite, one.Name, one.Title = c.Name, c.Kind, c.Name
	one.Word, one.Seen, one.Took = string(c.Verdict), c.Why, time.Duration(c.Seconds*float64(time.Second))
	switch {
	case c.Witness != nil:
		one.Command = c.Witness.Command
	case c.Kind == Explore || one.Command == "":
		one.Command = c.Command
	}
	switch {
	case c.Status == Error:
		one.Group, one.Word, one.Status = errored, string(Error), report.Failed
	case c.Status == Inconclusive:
		one.Group, one.Word, one.Status = unclear, string(Inconclusive), report.Void
	case c.Status == Holds && c.Verdict != verdict.Holds: // the service promises this violation, so the check holds
		one.Group, one.Status = holding, report.Breaks
	case c.Status == Holds:
		one.Group, one.Status = holding, report.Holds
	case r.Fails(c):
		one.Group, one.Status = failing, report.Contradicts
	default:
		one.Group, one.Status = old, report.Breaks
	}
	if c.Status == Broken && c.Promise == "" {
		one.Promise = "" // the group's heading says the promise
	}
	for _, line := range c.remarks() {
		one.Seen += "; " + line
	}
	return one
}

// Text writes the check as text for the log of a CI job.
func (c Check) Text(w io.Writer) error {
	text := fmt.Sprintf("%s: %s", c.Name, cmp.Or(string(c.Verdict), string(c.Status)))
	if c.Kind == Explore && c.Status != Error {
		text += fmt.Sprintf(" (%s, %.1f s)", plural.Count(c.Schedules, "schedule"), c.Seconds)
	}
	text += ": " + c.Why
	for _, line := range c.remarks() {
		text += "\n  " + line
	}
	switch {
	case c.Witness != nil:
		text += "\n  replay: " + c.Witness.Command
	case c.Status != Holds:
		text += "\n  again: " + c.Command
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// Problem describes in one line the first check that has this status; "" if there is none.
func (r Result) Problem(s Status) string {
	for _, c := range r.With(s) {
		return fmt.Sprintf("%s: %s: %s", c.Name, s, c.Why)
	}
	return ""
}

// remarks returns the facts that a reader needs besides the verdict.
func (c Check) remarks() (lines []string) {
	if c.Change != "" && c.ChangeWhy != "" {
		lines = append(lines, fmt.Sprintf("%s: %s", c.Change, c.ChangeWhy))
	}
	if len(c.Attempts) > 1 {
		var all []string
		for _, a := range c.Attempts {
			all = append(all, string(a.Status))
		}
		lines = append(lines, fmt.Sprintf("%d attempts: %s", len(c.Attempts), strings.Join(all, ", then ")))
	}
	if c.Unchanged != nil {
		lines = append(lines, c.Unchanged.String())
	}
	if c.File != "" && c.Line > 0 && c.Status == Broken {
		lines = append(lines, fmt.Sprintf("the rule is at %s:%d", c.File, c.Line))
	}
	for _, s := range c.Sources {
		lines = append(lines, fmt.Sprintf("the program's log names %s:%d: %s", s.File, s.Line, s.Text))
	}
	return lines
}
