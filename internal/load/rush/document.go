package rush

import (
	"slices"
	"time"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// The groups of a document's cases.
const (
	notAsPromised = iota
	asPromised
)

// Document returns the report for every file format. `started` is the time of the first burst.
func (r Report) Document(started time.Time) report.Document {
	d := report.Document{
		Command: "shop rush", Title: "A crowd at once: what was left, and what was recorded", Lead: r.lead(),
		Started: started, Took: time.Since(started), Alarm: r.Unfinished, Tables: []report.Table{r.results()}, Value: r,
		Groups: []report.Group{
			notAsPromised: {Heading: "Not as promised"},
			asPromised:    {Heading: "As promised, or without a promise", Brief: true, Columns: [3]string{"command", "strategy", "what was seen"}},
		},
	}
	d.Notes = slices.Concat(r.Strikes, r.Growth)
	for _, left := range r.LeftOut {
		d.Notes = append(d.Notes, "Left out: "+left+".")
	}
	for _, x := range r.Results {
		one := report.Case{
			Group: asPromised, Suite: "rush", Name: x.Strategy, Title: x.Strategy, Word: string(x.Verdict), Status: x.status(),
			Promise: string(x.Promise), Seen: x.seen(), Took: time.Duration(x.DurationMS * float64(time.Millisecond)),
		}
		if one.Status == report.Contradicts || one.Status == report.Void {
			one.Group = notAsPromised
		}
		d.Cases = append(d.Cases, one)
	}
	return d
}

func (r Report) results() report.Table {
	t := report.Table{Columns: []report.Column{{Name: "strategy"}}, Legend: true}
	for _, name := range r.columns() {
		t.Columns = append(t.Columns, report.Column{Name: name, Numbers: true})
	}
	t.Columns = append(t.Columns, report.Column{Name: "verdict"})
	for _, x := range r.Results {
		t.Rows = append(t.Rows, append(report.Row(x.Strategy, x.fields()...), report.Cell{Text: x.word(), Status: x.status(), Case: "rush-" + x.Strategy}))
	}
	return t
}

// word returns the verdict for the table. A mark says that the strategy holds here and breaks under other
// conditions.
func (x Result) word() string {
	if x.breaksElsewhere() {
		return string(x.Verdict) + " *"
	}
	return string(x.Verdict)
}

func (x Result) breaksElsewhere() bool {
	return x.Verdict == verdict.Holds && len(x.BreaksUnder) > 0
}

func (x Result) status() report.Status {
	switch {
	case x.Verdict == verdict.Inconclusive:
		return report.Void
	case x.Promise != "" && !x.Promise.Keeps(x.Verdict):
		return report.Contradicts
	case x.Verdict == verdict.Holds:
		return report.Holds
	}
	return report.Breaks
}
