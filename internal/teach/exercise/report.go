package exercise

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/exercises/judge"
	"github.com/oversell/oversell/internal/judge/report"
)

// Document returns the result of a check as a report, for output in several formats.
func (r Result) Document(e exercises.Exercise, started time.Time) report.Document {
	d := report.Document{
		Command: "shop exercise check", Title: fmt.Sprintf("Exercise %d: %s", e.Number, e.Title), Lead: "What the check has shown, up to the first thing that goes wrong",
		Started: started, Took: time.Since(started), Value: r, Groups: []report.Group{{Heading: "Checks"}},
	}
	statuses := map[string]report.Status{judge.Passed: report.Holds, judge.Wrong: report.Contradicts}
	for n, check := range r.Checks {
		status, known := statuses[check.Verdict]
		if !known {
			status = report.Void
		}
		c := report.Case{
			Suite: e.Folder, Name: fmt.Sprintf("check-%d", n+1), Title: check.Name, Word: check.Verdict, Status: status, Seen: check.Why,
		}
		if check.Story != "" {
			c.Details = append(c.Details, report.Detail{Text: check.Story})
		}
		if check.Diagram != "" {
			c.Details = append(c.Details, report.Detail{Text: check.Diagram, Mermaid: check.Mermaid})
		}
		d.Cases = append(d.Cases, c)
	}
	return d
}

// Print prints the result of a check.
func (r Result) Print(out io.Writer) {
	for _, check := range r.Checks {
		fmt.Fprintf(out, "  %-7s %s\n", check.Verdict, strings.TrimSuffix(check.Name+": "+check.Why, ": "))
	}
	if last := r.Last(); last.Story != "" {
		fmt.Fprintf(out, "\n%s\n", last.Story)
	}
	if last := r.Last(); last.Diagram != "" {
		fmt.Fprintf(out, "\n%s", last.Diagram)
	}
	if r.Passed() && r.Trips > 0 {
		fmt.Fprintf(out, "\n%-34s %8s %10s\n", "", "yours", "reference")
		theirs := "-" // the reference solution was not measured
		if r.Theirs > 0 {
			theirs = fmt.Sprintf("%.1f", r.Theirs)
		}
		fmt.Fprintf(out, "%-34s %8.1f %10s\n", "round trips of one buyer, alone", r.Trips, theirs)
		if r.TheirPerSecond > 0 {
			fmt.Fprintf(out, "%-34s %8.0f %10.0f   %.2f times as many\n", "sales a second, in this run", r.PerSecond, r.TheirPerSecond, r.PerSecond/r.TheirPerSecond)
		}
	}
}
