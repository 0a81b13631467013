package scan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/findings"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/plural"
)

// A Report is the result of a scan, as `shop scan --json` prints it.
type Report struct {
	Program       string    `json:"program"`
	Servers       string    `json:"servers"`
	Requests      []Request `json:"requests"`
	Pairs         []Pair    `json:"pairs"`            // in the order of exploration, then those that are left out
	Unused        []string  `json:"unused,omitempty"` // requests of --openapi, --har or --curl that the scan cannot use, each with what to do
	BudgetSeconds float64   `json:"budget_seconds"`
	Seconds       float64   `json:"seconds"`
	Unfinished    string    `json:"unfinished,omitempty"` // reason why requests or pairs are missing; "" if none is
	OK            bool      `json:"ok"`                   // exit code 0
}

// Broken reports whether a pair races.
func (r Report) Broken() bool { return r.count(verdict.Verdict.IsBreak) > 0 }

// count returns the number of explored pairs with a matching verdict.
func (r Report) count(matches func(verdict.Verdict) bool) (n int) {
	for _, p := range r.Pairs {
		if !p.LeftOut && matches(p.Verdict) {
			n++
		}
	}
	return n
}

func isVerdict(v verdict.Verdict) func(verdict.Verdict) bool {
	return func(other verdict.Verdict) bool { return other == v }
}

// open returns a line for each request and pair that is not completely explored, with what to do. Those
// that the scan did not reach share one line.
func (r Report) open() (requests, pairs []string) {
	notRun := 0
	for _, one := range r.Requests {
		switch {
		case one.NotRun:
			notRun++
		case one.Problem != "":
			requests = append(requests, one.Name+": "+one.Problem)
		}
	}
	requests = append(requests, r.Unused...)
	if notRun > 0 {
		requests = append(requests, plural.Count(notRun, "request")+r.noTurn())
	}
	notRun = 0
	for _, p := range r.Pairs {
		switch {
		case p.LeftOut:
		case p.NotRun:
			notRun++
		case p.Verdict == verdict.Inconclusive:
			pairs = append(pairs, p.Name()+": "+p.Why)
		}
	}
	if notRun > 0 {
		pairs = append(pairs, plural.Count(notRun, "pair")+r.noTurn())
	}
	return requests, pairs
}

// noTurn returns the reason why the scan did not reach some requests or pairs.
func (r Report) noTurn() string {
	if r.Unfinished != "" {
		return " had no turn"
	}
	return " had no turn before --budget was spent: raise --budget, or list fewer requests"
}

// Unproven returns the reason, in one line, why a scan without a race proves nothing; "" if there is
// none.
func (r Report) Unproven() string {
	requests, pairs := r.open()
	reasons := append(requests, pairs...)
	switch {
	case r.Unfinished != "":
		return r.Unfinished
	case len(reasons) > 1:
		return fmt.Sprintf("%s; and %s", reasons[0], plural.Count(len(reasons)-1, "other reason"))
	case len(reasons) == 1:
		return reasons[0]
	case r.Broken() || r.count(isVerdict(verdict.Holds)) > 0:
		return ""
	case slices.ContainsFunc(r.Pairs, func(p Pair) bool { return p.Search != nil }): // searched, and then left out
		return "every pair uses different rows of what it shares, so it has only one order: list requests for the same rows, such as two purchases of one item"
	default:
		return "no request writes what another one uses, so nothing was explored: list requests that change something, such as a purchase"
	}
}

// Finish sets OK. Call it last.
func (r *Report) Finish() { r.OK = !r.Broken() && r.Unproven() == "" }

func (r Report) title() string {
	var counts []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{r.count(verdict.Verdict.IsBreak), "race"},
		{r.count(isVerdict(verdict.Holds)), "hold"},
		{r.count(isVerdict(verdict.Inconclusive)), "inconclusive"},
		{len(r.Pairs) - r.count(func(verdict.Verdict) bool { return true }), "left out"},
	} {
		if c.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return fmt.Sprintf("%s on %s: %s, %s: %s", r.Program, r.Servers, plural.Count(len(r.Requests), "request"), plural.Count(len(r.Pairs), "pair"), strings.Join(counts, ", "))
}

// status returns the status of the pair's cell in the table.
func (p Pair) status() report.Status {
	switch p.Verdict {
	case verdict.Holds:
		return report.Holds
	case verdict.Inconclusive:
		return report.Void
	}
	return report.Contradicts
}

func (r Report) table() report.Table {
	t := report.Table{Columns: []report.Column{{Name: "pair"}, {Name: "conflict", Width: 40}, {Name: "schedules", Numbers: true}, {Name: "complete"}, {Name: "verdict"}}}
	for _, p := range r.Pairs {
		if !p.Explored() {
			continue
		}
		row := report.Texts(p.Name(), strings.Join(p.Conflicts, ", "), strconv.Itoa(p.Schedules), map[bool]string{true: "yes", false: "no"}[p.Complete], string(p.Verdict))
		row[4].Status = p.status()
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (r Report) notes() (all []string) {
	list := func(heading string, lines []string) {
		if more := len(lines) - mostNamed; more > 0 {
			lines = append(lines[:mostNamed:mostNamed], fmt.Sprintf("and %d more", more))
		}
		for _, line := range lines {
			all = append(all, heading+": "+line)
		}
	}
	list("left out", leftOut(r.Pairs))
	requests, pairs := r.open()
	list("not explored", requests)
	list("inconclusive", pairs)
	return all
}

// mostSteps is the maximum number of steps of a printed witness. A longer witness would fill many
// screens.
const mostSteps = 40

// Text prints the explored pairs, the requests and pairs that are not explored, and the first short
// witness.
func (r Report) Text(w io.Writer, colour bool) error {
	fmt.Fprintf(w, "%s in %.1f s\n", r.title(), r.Seconds)
	if t := r.table(); len(t.Rows) > 0 {
		fmt.Fprintln(w, t.Terminal(report.Look{Marks: true, Colour: colour}))
	}
	for _, note := range r.notes() {
		fmt.Fprintln(w, note)
	}
	if r.Unfinished != "" {
		fmt.Fprintln(w, "unfinished: "+r.Unfinished)
	}
	shown, unsaved := false, false
	for _, p := range r.Pairs {
		if !p.Races() {
			continue
		}
		fmt.Fprintf(w, "\n%s: %s\n", p.Name(), p.Why)
		if found := p.Search.Witness; !shown && found != nil && len(found.Steps) <= mostSteps {
			shown = true
			if err := found.Text(w, 2); err != nil {
				return err
			}
		}
		if p.Replay != "" {
			fmt.Fprintln(w, "see it: "+p.Replay)
		}
		unsaved = unsaved || p.Replay == ""
	}
	if unsaved {
		fmt.Fprintln(w, "\n--save DIR keeps a replay of each, and --report FILE shows all")
	}
	return nil
}

// Document returns the result for the formats of --report.
func (r Report) Document(command string) (report.Document, error) {
	d := report.Document{
		Command: "shop scan", Title: "Which requests of " + r.Program + " race", Lead: r.title(), Took: time.Duration(r.Seconds * float64(time.Second)), Alarm: r.Unfinished,
		Tables: []report.Table{r.table()}, Notes: r.notes(), Groups: []report.Group{{Heading: "Pairs"}}, Value: r,
		Sums: []report.Sum{{Count: r.count(verdict.Verdict.IsBreak), What: "race", Status: report.Contradicts}, {Count: r.count(isVerdict(verdict.Inconclusive)), What: "inconclusive", Status: report.Void}, {Count: r.count(isVerdict(verdict.Holds)), What: "hold", Status: report.Holds}},
	}
	for _, p := range r.Pairs {
		if !p.Explored() {
			continue
		}
		one := report.Case{Status: p.status(), Word: string(p.Verdict), Seen: cmp.Or(p.Why, "none breaks")}
		if p.Search != nil {
			again := func(*explore.Witness) string { return cmp.Or(p.Replay, command) }
			searched, err := findings.Origin{Subject: p.Name(), Again: again}.Document(*p.Search)
			if err != nil {
				return d, err
			}
			one = searched.Cases[0]
		}
		one.Suite, one.Name, one.Title, one.Took = r.Program, p.Name(), p.Name(), time.Duration(p.Seconds*float64(time.Second))
		d.Cases = append(d.Cases, one)
	}
	return d, nil
}
