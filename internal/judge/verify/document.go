package verify

import (
	"fmt"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/judge/linear"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/plural"
)

// The groups of a document's cells (strategies under one condition) in reading order. Contradictions come first,
// then promised violations with the schedules or histories that show them, then one line for each cell that holds.
const (
	wrong = iota
	breaks
	holds
)

// lead returns a sentence with the number of cells and the servers of the run.
func (r Report) lead() string {
	text := plural.Count(len(r.Cells), "cell")
	switch {
	case r.Target != "":
		return text + " at " + r.Target
	case r.Server != "":
		return fmt.Sprintf("%s on the %s engine, %s", text, r.Engine, r.Server)
	}
	return fmt.Sprintf("%s on the %s engine", text, r.Engine)
}

// notPromised returns the reasons why promises are missing, one sentence for each reason.
func (r Report) notPromised() (notes []string) {
	type key struct{ why, strategy string }
	var whys []string
	strategies, faults := map[string][]string{}, map[key][]string{}
	for _, c := range r.Cells {
		k := key{c.NoPromise, c.Strategy}
		switch {
		case k.why == "":
			continue
		case strategies[k.why] == nil:
			whys = append(whys, k.why)
		}
		if faults[k] == nil {
			strategies[k.why] = append(strategies[k.why], k.strategy)
		}
		faults[k] = append(faults[k], string(c.Fault))
	}
	for _, why := range whys {
		var where []string
		for _, s := range strategies[why] {
			where = append(where, s+" under "+strings.Join(faults[key{why, s}], ", "))
		}
		notes = append(notes, "No promise is made for "+strings.Join(where, "; ")+": "+why+".")
	}
	return notes
}

// Document returns the report for all formats. command is the command of the run.
func (r Report) Document(command string) report.Document {
	sorted := r.Sort()
	d := report.Document{
		Command: command, Title: "Which faults break which strategy: " + r.where(), Lead: r.lead(),
		Sums: []report.Sum{
			{Count: len(sorted.Kept) - sorted.free(), What: "as promised", Status: report.Holds},
			{Count: len(sorted.Broken), What: "contradict", Status: report.Contradicts},
			{Count: len(sorted.Void), What: "inconclusive", Status: report.Void},
		},
		Started: r.Started, Took: time.Duration(r.DurationMS) * time.Millisecond, Alarm: r.Unfinished,
		Tables: []report.Table{r.matrix()}, Page: matrixPage{r}.page(),
		Groups: []report.Group{
			wrong:  {Heading: "Not as promised"},
			breaks: {Heading: "Breaks, as promised", OffPage: true},
			holds:  {Heading: "Holds, as promised or without a promise", OffPage: true, Brief: true, Columns: [3]string{"strategy", "under", "what was seen"}},
		},
		Value: r,
	}
	if n := sorted.free(); n > 0 {
		d.Sums = append(d.Sums, report.Sum{Count: n, What: "without a promise", Status: report.Holds})
	}
	if n := len(sorted.Failed); n > 0 {
		d.Sums = append(d.Sums, report.Sum{Count: n, What: "of the harness failed", Status: report.Void})
	}
	d.Notes = append(d.Notes, r.notPromised()...)
	for _, left := range r.LeftOut {
		d.Notes = append(d.Notes, "Left out: "+left+".")
	}
	strategies, faults := axes(r.Cells)
	for _, s := range strategies {
		for _, f := range faults {
			if c := r.cell(s, f); c != nil {
				d.Cases = append(d.Cases, presented{c}.document())
			}
		}
	}
	return d
}

func (r Report) matrix() report.Table {
	strategies, faults := axes(r.Cells)
	t := report.Table{
		Columns: []report.Column{{Name: "strategy"}}, Legend: true,
		Note: "An empty cell was not run: the fault does not affect the strategy, the strategy breaks without it (explorer), or the run left it out, see below. A fault is injected while a buyer is in its critical section. The explorer's events come at any step, so the two columns of one cause may differ.",
	}
	for _, f := range faults {
		t.Columns = append(t.Columns, report.Column{Name: string(f)})
	}
	for _, s := range strategies {
		row := []report.Cell{{Text: s, Code: true}}
		for _, f := range faults {
			var field report.Cell
			if c := r.cell(s, f); c != nil {
				field = presented{c}.field()
			}
			row = append(row, field)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

type presented struct{ *Cell }

func (c presented) field() report.Cell {
	return report.Cell{Text: c.counted(), Status: c.status(), Case: c.Strategy + "-" + string(c.Fault)}
}

func (c presented) shown() string {
	if c.HarnessError != "" {
		return "harness error"
	}
	return string(c.Verdict)
}

func (c presented) status() report.Status {
	switch {
	case c.HarnessError != "":
		return report.Failed
	case c.Verdict == verdict.Inconclusive:
		return report.Void
	case !c.OK:
		return report.Contradicts
	case c.Verdict == verdict.Holds:
		return report.Holds
	}
	return report.Breaks
}

func (c presented) document() report.Case {
	one := report.Case{
		Suite: c.Strategy, Name: string(c.Fault), Title: fmt.Sprintf("%s under %s", c.Strategy, c.Fault),
		Word: c.shown(), Status: c.status(), Promise: orNothing(c.Promise), Seen: c.Evidence,
		Command: c.Replay, Took: time.Duration(c.DurationMS) * time.Millisecond,
	}
	switch one.Status {
	case report.Holds:
		one.Group = holds
		one.Small = small(c.Cell)
		return one
	case report.Breaks:
		one.Group = breaks
	}
	one.Small = append([]string{fmt.Sprintf("Stocked %d, records %d, units sold %d, left %d, drift %d.",
		c.Audited.Stocked, c.Audited.Records, c.Audited.UnitsSold, c.Audited.Leftover, c.Audited.Drift)}, small(c.Cell)...)
	if c.Picture != "" {
		link := "How far the buys can be put in order"
		if c.Linearizable == linear.No {
			link = "Why no order of the buys explains it"
		}
		one.Details = append(one.Details, report.Detail{File: c.Picture, Summary: link})
	}
	if w := c.Witness; w != nil {
		answers := ""
		for _, o := range w.Outcomes {
			answers += fmt.Sprintf("Buyer %d was answered %s. ", o.Buyer, o.Answer)
		}
		one.Details = append(one.Details, report.Detail{
			Text: w.Text, Mermaid: w.Mermaid, After: answers, Summary: "as text, and for Mermaid",
		})
	}
	return one
}

func small(c *Cell) (lines []string) {
	if c.Linearizable == linear.Yes {
		lines = append(lines, "Linearizable.")
	}
	if c.NextSaleMS != nil {
		lines = append(lines, fmt.Sprintf("The next sale to another buyer came %d ms after the fault.", *c.NextSaleMS))
	}
	return lines
}
