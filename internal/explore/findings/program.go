package findings

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/plural"
)

// A Program is the output of `shop verify --app --json`.
type Program struct {
	Explore    explore.Report `json:"explore"`
	Rush       *Rush          `json:"rush"`                 // null: the rush did not run
	Unfinished string         `json:"unfinished,omitempty"` // reason why a part is missing; "": complete
	OK         bool           `json:"ok"`                   // the command ends with exit code 0
}

// A Rush is a series of bursts, one after the other. In a burst, all buyers send their requests at once.
type Rush struct {
	Buyers  int             `json:"buyers"` // number of buyers in each burst
	Asked   int             `json:"asked"`  // number of requested bursts
	Rounds  []target.Crowd  `json:"rounds"` // bursts that were sent
	Seconds float64         `json:"seconds"`
	Verdict verdict.Verdict `json:"verdict"` // the worst of the bursts: broken, failed, inconclusive; holds only if every requested burst holds
	Why     string          `json:"why,omitempty"`
}

func (r *Rush) judge() {
	count := map[verdict.Verdict]int{}
	for _, c := range r.Rounds {
		count[c.Verdict]++
	}
	r.Verdict = verdict.Inconclusive
	for _, v := range []verdict.Verdict{verdict.Inconclusive, verdict.Failed, verdict.Broken} { // in order of increasing severity, so the worst verdict wins
		for n, c := range r.Rounds {
			if c.Verdict == v && (r.Verdict != v || r.Why == "") {
				r.Verdict, r.Why = v, fmt.Sprintf("round %d: %s", n+1, c.Why)
			}
		}
	}
	if count[verdict.Holds] == r.Asked {
		r.Verdict = verdict.Holds
	}
}

// NewRush returns a rush with its verdict. The parameter `asked` is the number of requested bursts.
func NewRush(buyers, asked int, crowds []target.Crowd, took time.Duration) *Rush {
	r := &Rush{Buyers: buyers, Asked: asked, Rounds: crowds, Seconds: took.Seconds()}
	r.judge()
	return r
}

// Broken reports whether the search or the rush found a violation.
func (r *Program) Broken() bool {
	return r.Explore.Violations > 0 || r.Rush != nil && r.Rush.broken()
}

// broken reports whether a burst broke a rule or had failures.
func (r *Rush) broken() bool { return r.Verdict == verdict.Broken || r.Verdict == verdict.Failed }

// Unproven says which parts of the result prove nothing; "" if there are none.
func (r *Program) Unproven() string {
	var whys []string
	if why := Unproven(r.Explore); why != "" {
		whys = append(whys, why)
	}
	if r.Rush != nil && r.Rush.Verdict == verdict.Inconclusive {
		whys = append(whys, fmt.Sprintf("%s: the rush shows nothing: %s", r.Explore.Strategy, r.Rush.Why))
	}
	return strings.Join(whys, "; ")
}

// Finish sets the fields that depend on other fields.
func (r *Program) Finish() {
	r.OK = r.Unfinished == "" && !r.Broken() && r.Unproven() == ""
}

// Text writes the report as text for the user.
func (r *Program) Text(w io.Writer, _ bool) error {
	format, known := witness.FormatNamed("text")
	if !known {
		return errors.New("there is no format text")
	}
	if err := format.Write(w, Of(r.Explore)); err != nil {
		return err
	}
	if r.Rush != nil {
		if err := r.Rush.text(w, r.Explore.Strategy); err != nil {
			return err
		}
	}
	if !r.OK {
		return nil
	}
	_, err := fmt.Fprintln(w, "what exit code 0 proves: "+report.Proof("explore"))
	return err
}

// text writes a table of the bursts, and the first burst with the worst verdict.
func (r *Rush) text(w io.Writer, name string) error {
	t := report.Table{Columns: report.Columns("round", "buyers", "told sold", "failed", "no answer", "commands at once", "verdict")}
	for n, c := range r.Rounds {
		var row []report.Cell
		for i, number := range []int{n + 1, c.Buyers, c.Sold, c.Failed, c.Unanswered, c.AtOnce} {
			t.Columns[i].Numbers = true
			row = append(row, report.Cell{Text: fmt.Sprint(number)})
		}
		t.Rows = append(t.Rows, append(row, report.Cell{Text: string(c.Verdict)}))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nrush: %s, %s of %d buyers at once in %.1f s: %s\n%s\n", name, plural.Count(len(r.Rounds), "burst"), r.Buyers, r.Seconds, r.Verdict, t.Terminal(report.Look{}))
	switch {
	case r.Why == "":
	case r.broken():
		at := slices.IndexFunc(r.Rounds, func(c target.Crowd) bool { return c.Verdict == r.Verdict })
		fmt.Fprintf(&b, "%s: round %d: %s", r.Verdict, at+1, brokenText(r.Rounds[at]))
	default:
		fmt.Fprintf(&b, "%s: %s\n", r.Verdict, r.Why)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// brokenText describes a burst that broke a rule or had failures.
func brokenText(c target.Crowd) string {
	var b strings.Builder
	if len(c.Findings) == 0 {
		fmt.Fprintln(&b, c.Why)
	}
	for _, f := range c.Findings {
		_ = f.Text(&b) // writing to b has no error
	}
	fmt.Fprintf(&b, "%d of %d buyers were told that they have bought", c.Sold, c.Buyers)
	if c.Unanswered > 0 {
		fmt.Fprintf(&b, "; %d got no answer", c.Unanswered)
	}
	if c.Undone != "" {
		b.WriteString("; " + c.Undone)
	}
	b.WriteString("\n")
	return b.String()
}

// Document returns the search and the rush for the formats of --report. The parameter `given` has the flags that name the
// program.
func (r *Program) Document(o Origin, command, given string) (report.Document, error) {
	d, err := o.Document(r.Explore)
	d.Command, d.Value, d.Alarm = command, r, r.Unfinished
	if err != nil || r.Rush == nil {
		return d, err
	}
	d.Title = fmt.Sprintf("Every schedule of %d buyers of %s, and a rush of %d", r.Explore.Buyers, r.Explore.Strategy, r.Rush.Buyers)
	c := report.Case{
		Group: len(d.Groups), Suite: r.Explore.Strategy, Name: "rush", Title: r.Explore.Strategy, Word: string(r.Rush.Verdict),
		Status:  map[verdict.Verdict]report.Status{verdict.Holds: report.Holds, verdict.Broken: report.Contradicts, verdict.Failed: report.Contradicts, verdict.Inconclusive: report.Void}[r.Rush.Verdict],
		Seen:    cmp.Or(r.Rush.Why, fmt.Sprintf("%s of %d buyers at once, none breaks", plural.Count(len(r.Rush.Rounds), "crowd"), r.Rush.Buyers)),
		Took:    time.Duration(r.Rush.Seconds * float64(time.Second)),
		Command: fmt.Sprintf("shop verify%s --rush-buyers %d --repeat %d", given, r.Rush.Buyers, r.Rush.Asked),
	}
	var text strings.Builder
	if err := r.Rush.text(&text, r.Explore.Strategy); err != nil {
		return d, err
	}
	c.Details = []report.Detail{{Text: strings.TrimPrefix(text.String(), "\n"), Summary: "as text"}}
	d.Groups = append(d.Groups, report.Group{Heading: "The rush"})
	d.Cases = append(d.Cases, c)
	d.Took += c.Took
	return d, nil
}
