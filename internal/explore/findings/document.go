package findings

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// An Origin describes the explored strategy or program, as the command line names it.
type Origin struct {
	Subject string
	Again   func(*explore.Witness) string // the command that replays a schedule
}

// Document returns the result of a search for the formats of --report.
func (o Origin) Document(r explore.Report) (report.Document, error) {
	d := report.Document{
		Command: "shop explore", Title: fmt.Sprintf("Every schedule of %d buyers of %s", r.Buyers, r.Strategy),
		Lead:   fmt.Sprintf("%s%s: %s, %s", subject(r), withEvents(r.Events), r.Extent(), r.Broken()),
		Took:   time.Duration(r.Seconds * float64(time.Second)),
		Groups: []report.Group{{Heading: "What breaks"}},
		Value:  r,
	}
	search := report.Case{Suite: r.Strategy, Name: "explore", Title: r.Strategy, Word: "holds", Status: report.Holds, Seen: r.Extent() + ", none breaks", Took: d.Took}
	switch {
	case r.Witness != nil:
		var err error
		if search, err = o.witnessed(search, r.Witness, r.Buyers); err != nil {
			return d, err
		}
	case !r.Complete || ofProgram(r) && (r.Violations > 0 || Unproven(r) != ""):
		d.Groups[0].Heading = "What was seen"
		search.Word, search.Status = "inconclusive", report.Void
	default:
		d.Groups[0].Heading = "What was seen"
	}
	if notes := r.Notes(); notes != nil {
		search.Details = append(search.Details, report.Detail{Text: strings.Join(notes, "\n"), Summary: "what else was seen"})
	}
	d.Cases = append(d.Cases, search)
	if r.ForeignWitness != nil {
		d.Groups = append(d.Groups, report.Group{Heading: fmt.Sprintf("In %d schedules a buyer deletes the lock of another", r.Foreign)})
		foreign, err := o.witnessed(report.Case{Group: 1, Suite: r.Strategy, Name: "foreign-unlock"}, r.ForeignWitness, r.Buyers)
		if err != nil {
			return d, err
		}
		foreign.Word, foreign.Status = string(verdict.Unlocked), report.Contradicts // a contradiction even if the stock is correct
		if entry, _ := lockstrategy.ByName(r.Strategy); entry.Lock.FreesAnothers {
			foreign.Status = report.None // the catalogue states that this lock allows it
		}
		d.Cases = append(d.Cases, foreign)
	}
	return d, nil
}

// Replayed returns a replayed schedule for the formats of --report.
func (o Origin) Replayed(w *witness.Witness) (report.Document, error) {
	d := report.Document{
		Command: "shop explore", Title: "shop explore " + o.Subject, Lead: "One schedule, run again",
		Groups: []report.Group{{Heading: "What was seen"}}, Value: w,
	}
	one, err := o.witnessed(report.Case{Suite: o.Subject, Name: "replay"}, w, len(w.Outcomes))
	d.Cases = []report.Case{one}
	return d, err
}

// witnessed returns case c with the schedule of witness w.
func (o Origin) witnessed(c report.Case, w *witness.Witness, buyers int) (report.Case, error) {
	var text, mermaid strings.Builder
	if err := cmp.Or(w.Text(&text, buyers), w.Mermaid(&mermaid, buyers)); err != nil {
		return c, err
	}
	c.Title, c.Word, c.Status, c.Seen = o.Subject, string(w.Verdict), report.Holds, w.Why
	if w.Broken() {
		c.Status = report.Contradicts
	}
	c.Command = o.Again(w)
	steps := witnessTable(w, buyers)
	c.Details = []report.Detail{{Text: text.String(), Mermaid: mermaid.String(), Table: &steps, After: w.Omission(), Summary: "as text, and for Mermaid"}}
	return c, nil
}

// witnessTable returns a table with one row per shown step and one column per buyer.
func witnessTable(w *witness.Witness, buyers int) report.Table {
	t := report.Table{Columns: []report.Column{{Name: "step", Numbers: true}}}
	for i := range buyers {
		t.Columns = append(t.Columns, report.Column{Name: fmt.Sprintf("buyer %d", i+1)})
	}
	for _, name := range w.Columns() {
		t.Columns = append(t.Columns, report.Column{Name: name, Numbers: true})
	}
	for _, r := range w.PeopleRows() {
		for n, s := range r.Steps {
			row := make([]report.Cell, len(t.Columns))
			if n == 0 {
				row[0].Text = r.Number()
			}
			row[max(s.Buyer, 1)].Text = strings.Join(filled(s.Command, s.Result, s.Note), " → ")
			for i, value := range w.Values(s) {
				row[buyers+1+i].Text = value
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func filled(texts ...string) (some []string) {
	for _, t := range texts {
		if t != "" {
			some = append(some, t)
		}
	}
	return some
}
