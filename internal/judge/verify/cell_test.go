package verify

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// TestJudge compares each case in which a cell proves nothing with the most similar case in which it proves
// something.
func TestJudge(t *testing.T) {
	now := time.Now()
	told := func(who string, outcome purchase.Outcome, id int64) buyers.Answer {
		return buyers.Answer{Answer: audit.Answer{Purchaser: who, Outcome: outcome, ID: id, Start: now, End: now.Add(time.Millisecond)}}
	}
	sold, refused := told("a", purchase.Sold, 1), told("b", purchase.SoldOut, 0)
	crowd := []buyers.Answer{sold, refused}
	inside := func(a buyers.Answer, from, to time.Duration) buyers.Answer {
		a.Inside = [2]time.Time{now.Add(from), now.Add(to)}
		return a
	}
	inTurn := []buyers.Answer{inside(sold, 0, 1), inside(refused, 2, 3)}
	two := func(a buyers.Answer) buyers.Answer { a.Units = 2; return a }
	ofTwo := []buyers.Answer{two(sold), two(refused)}
	sales := map[int64]audit.Sale{1: {Purchaser: "a", Amount: 1}}
	books := audit.Sums{Stocked: 1, Records: 1, UnitsSold: 1}
	// One of four buyers is sold a unit 2 s after the others, with a lease of 2 s.
	late := fault.Facts{Times: fault.Times{Lease: 2 * time.Second, Wait: 7 * time.Second}}
	soldLate := map[int64]audit.Sale{}
	for i, ms := range []time.Duration{5, 9, 12, 2012} {
		id := int64(i + 1)
		a := told(fmt.Sprint(id), purchase.Sold, id)
		a.End = now.Add(ms * time.Millisecond)
		late.Last, soldLate[id] = append(late.Last, a), audit.Sale{Purchaser: a.Purchaser, Amount: 1}
	}
	late.Last = append(late.Last, refused)
	late.Answers = late.Last
	starved := late
	starved.Starved = pulse.Delays{{From: now.Add(100 * time.Millisecond), To: now.Add(1100 * time.Millisecond)}}
	for _, c := range []struct {
		name  string
		facts fault.Facts
		books audit.Sums
		sales map[int64]audit.Sale
		want  verdict.Verdict
	}{
		{"sound", fault.Facts{Answers: crowd, Last: crowd}, books, sales, verdict.Holds},
		{"an empty load", fault.Facts{}, audit.Sums{Stocked: 1, Leftover: 1}, nil, verdict.Inconclusive},
		{"a load as small as the stock", fault.Facts{Answers: crowd[:1], Last: crowd[:1]}, books, sales, verdict.Inconclusive},
		{"sent at once, and inside one after the other", fault.Facts{Answers: inTurn, Last: inTurn}, books, sales, verdict.Inconclusive},
		{"orders of two units, of which three are there", fault.Facts{Answers: ofTwo, Last: ofTwo}, audit.Sums{Stocked: 3, Leftover: 1, Records: 1, UnitsSold: 2}, map[int64]audit.Sale{1: {Purchaser: "a", Amount: 2}}, verdict.Holds},
		{"the fault did not take effect", fault.Facts{Answers: crowd, Last: crowd, Missed: "nobody held"}, books, sales, verdict.Inconclusive},
		{"it did not take effect, and a sale is lost", fault.Facts{Answers: crowd, Last: crowd, Missed: "nobody held"}, audit.Sums{Stocked: 1, Leftover: 1}, nil, verdict.Lost},
		{"nobody got on", fault.Facts{Answers: crowd, Last: crowd, Stalled: "nobody could buy"}, books, sales, verdict.Stalled},
		{"killed, and its record is there", fault.Facts{Answers: []buyers.Answer{told("a", purchase.Unknown, 0), refused, refused}, Last: []buyers.Answer{refused, refused}}, books, sales, verdict.Holds},
		{"killed, and two records are there", fault.Facts{Answers: []buyers.Answer{told("a", purchase.Unknown, 0), refused}, Last: []buyers.Answer{refused, refused}}, audit.Sums{Stocked: 2, Records: 2, UnitsSold: 2}, map[int64]audit.Sale{1: {Purchaser: "a", Amount: 1}, 2: {Purchaser: "a", Amount: 1}}, verdict.Leaked},
		{"a buyer waited for a lease", late, audit.Sums{Stocked: 4, Records: 4, UnitsSold: 4}, soldLate, verdict.Stalled},
		{"the same on a busy machine", starved, audit.Sums{Stocked: 4, Records: 4, UnitsSold: 4}, soldLate, verdict.Inconclusive},
		{"one record for two receipts", fault.Facts{Answers: []buyers.Answer{sold, sold}, Last: crowd}, books, sales, verdict.Lost},
	} {
		t.Run(c.name, func(t *testing.T) {
			cell := Cell{Audited: c.books.Computed()}
			lost, untold := audit.Compare(buyers.Answers(c.facts.Answers), c.sales)
			cell.judge(c.facts, lost, untold)
			if cell.Verdict != c.want || cell.Reason == "" {
				t.Errorf("%s (%s), want %s", cell.Verdict, cell.Reason, c.want)
			}
		})
	}
}

// TestStallGoesOn: a promised stall ends with the fault. If no buyer is served after the repair either, the
// cell contradicts the promise.
func TestStallGoesOn(t *testing.T) {
	at := func(outcome purchase.Outcome, ms int64) buyers.Answer {
		return buyers.Answer{Answer: audit.Answer{Purchaser: "a", Outcome: outcome, Start: time.UnixMilli(0), End: time.UnixMilli(ms), Status: 503}}
	}
	for name, c := range map[string]struct {
		last []buyers.Answer
		ok   bool
	}{
		"served":            {[]buyers.Answer{at(purchase.SoldOut, 5), at(purchase.SoldOut, 5)}, true},
		"errors":            {[]buyers.Answer{at(purchase.Failed, 5), at(purchase.Failed, 5)}, false},
		"a lock is kept":    {[]buyers.Answer{at(purchase.Busy, 7000), at(purchase.Busy, 7000)}, false},
		"nobody came again": {nil, false},
	} {
		cell := Cell{Promise: verdict.Stalled, Audited: audit.Sums{Stocked: 1, UnitsSold: 1, Records: 1}}
		cell.judge(fault.Facts{Answers: c.last, Last: c.last, Stalled: "no buyer could buy while the nodes were down", Times: fault.DefaultTimes()}, 0, 0)
		if cell.Settle(); cell.OK != c.ok || cell.Verdict != verdict.Stalled {
			t.Errorf("%s: %s (%s), as promised %t; want %t", name, cell.Verdict, cell.Reason, cell.OK, c.ok)
		}
	}
}

// TestDisturbed: a failover that no fault has caused makes a cell inconclusive. A violation that a forgotten
// lock does not explain stays the verdict.
func TestDisturbed(t *testing.T) {
	for seen, want := range map[verdict.Verdict]verdict.Verdict{
		verdict.Holds: verdict.Inconclusive, verdict.Oversold: verdict.Inconclusive, verdict.Stalled: verdict.Inconclusive,
		verdict.Lost: verdict.Lost, verdict.Diverged: verdict.Diverged, verdict.Duplicated: verdict.Duplicated,
	} {
		cell := Cell{Verdict: seen, Reason: "as seen"}
		if cell.disturbed(""); cell.Disturbed() != "" || cell.Verdict != seen {
			t.Errorf("%s, and no failover: %s", seen, cell.Verdict)
		}
		if cell.disturbed("Redis failed over"); cell.Verdict != want || (cell.Disturbed() != "") != (want == verdict.Inconclusive) {
			t.Errorf("%s, and a failover: %s, to be played again: %q; want %s", seen, cell.Verdict, cell.Disturbed(), want)
		}
	}
}

// TestConfirms: a stall that the second play does not show proves nothing. If the second play also stalls, or
// shows a break that does not depend on timing, that verdict counts.
func TestConfirms(t *testing.T) {
	for again, want := range map[verdict.Verdict]verdict.Verdict{
		verdict.Holds: verdict.Inconclusive, verdict.Inconclusive: verdict.Inconclusive,
		verdict.Stalled: verdict.Stalled, verdict.Oversold: verdict.Oversold, verdict.Unlocked: verdict.Inconclusive,
	} {
		seen := []Cell{{Promise: verdict.Holds, Verdict: verdict.Stalled, Reason: "no buyer was served"}, {Promise: verdict.Holds, Verdict: again, Reason: "again"}}
		got, _ := verdict.Confirm(func() (Cell, error) {
			cell := seen[0]
			seen = seen[1:]
			return cell, nil
		})
		if said := strings.Contains(got.Evidence, fmt.Sprintf("stalled once, and %s when it was run again: no buyer was served", again)); got.Verdict != want || said != (want == verdict.Inconclusive) {
			t.Errorf("%s: %s (%s), want %s", again, got.Verdict, got.Evidence, want)
		}
	}
}

// TestConfirm: two bursts in a row may miss a promised violation. A result that does not depend on chance
// is played once.
func TestConfirm(t *testing.T) {
	for name, c := range map[string]struct {
		promised    verdict.Verdict
		seen        []verdict.Verdict // verdict of each play; further plays repeat the last verdict
		want        verdict.Verdict
		plays       int
		contradicts bool
	}{
		"a break at once":          {verdict.Oversold, []verdict.Verdict{verdict.Oversold}, verdict.Oversold, 1, false},
		"a break at last":          {verdict.Oversold, []verdict.Verdict{verdict.Holds, verdict.Holds, verdict.Drifted}, verdict.Drifted, 3, false},
		"a break that is mended":   {verdict.Oversold, []verdict.Verdict{verdict.Holds}, verdict.Holds, 3, true},
		"nothing is promised":      {"", []verdict.Verdict{verdict.Holds}, verdict.Holds, 1, false},
		"it is left to chance":     {"", []verdict.Verdict{verdict.Oversold}, verdict.Oversold, 1, false},
		"that is never chance":     {"", []verdict.Verdict{verdict.Lost}, verdict.Lost, 1, true},
		"nor is that":              {"", []verdict.Verdict{verdict.Diverged}, verdict.Diverged, 1, true},
		"as promised":              {verdict.Holds, []verdict.Verdict{verdict.Holds}, verdict.Holds, 1, false},
		"broken":                   {verdict.Holds, []verdict.Verdict{verdict.Oversold}, verdict.Oversold, 1, true},
		"stuck":                    {verdict.Holds, []verdict.Verdict{verdict.Stalled}, verdict.Stalled, 2, true},
		"unlocked":                 {verdict.Holds, []verdict.Verdict{verdict.Unlocked}, verdict.Unlocked, 2, true},
		"stuck as promised":        {verdict.Stalled, []verdict.Verdict{verdict.Stalled}, verdict.Stalled, 1, false},
		"slow":                     {verdict.Holds, []verdict.Verdict{verdict.Stalled, verdict.Holds}, verdict.Inconclusive, 2, true},
		"disturbed once":           {verdict.Holds, []verdict.Verdict{verdict.Inconclusive, verdict.Holds}, verdict.Holds, 2, false},
		"always disturbed":         {verdict.Holds, []verdict.Verdict{verdict.Inconclusive}, verdict.Inconclusive, 4, true},
		"stuck, then disturbed":    {verdict.Holds, []verdict.Verdict{verdict.Stalled, verdict.Inconclusive, verdict.Stalled}, verdict.Stalled, 3, true},
		"stuck at last":            {verdict.Holds, []verdict.Verdict{verdict.Inconclusive, verdict.Inconclusive, verdict.Inconclusive, verdict.Stalled, verdict.Holds}, verdict.Inconclusive, 5, true},
		"missed, and then stalled": {verdict.Oversold, []verdict.Verdict{verdict.Holds, verdict.Stalled, verdict.Holds}, verdict.Inconclusive, 3, true},
	} {
		plays := 0
		cell, err := verdict.Confirm(func() (Cell, error) {
			plays++
			cell := Cell{Promise: c.promised, Verdict: c.seen[min(plays, len(c.seen))-1], disturbance: "the machine stood still"}
			cell.Settle()
			return cell, nil
		})
		said := strings.Contains(cell.Evidence, fmt.Sprintf("played %d times, because ", plays))
		if err != nil || cell.Verdict != c.want || plays != c.plays || cell.OK == c.contradicts || said != (plays > 1) {
			t.Errorf("%s: %s after %d plays, as promised %t, %v", name, cell.Verdict, plays, cell.OK, err)
		}
	}
}

// TestTwoHolders: two buyers count as two holders only if they held the lock at the same time.
func TestTwoHolders(t *testing.T) {
	at := func(ms int, who string, kind history.Kind) history.Event {
		return history.Event{Kind: kind, At: time.UnixMilli(int64(ms)), Purchaser: who}
	}
	after := []history.Event{at(0, "a", history.Acquired), at(5, "a", history.Released), at(6, "b", history.Acquired), at(9, "b", history.Released)}
	beside := []history.Event{at(0, "a", history.Acquired), at(7, "a", history.Released), at(6, "b", history.Acquired), at(9, "b", history.Released)}
	for name, c := range map[string]struct {
		events []history.Event
		want   bool
	}{"one after the other": {after, false}, "beside": {beside, true}, "nothing": {nil, false}} {
		var cell Cell
		reading{&cell, c.events}.read()
		expect.Equal(t, cell.TwoHolders != nil, c.want, name)
	}
}

// TestHoldings: a buyer that hangs up holds its lock until its shop releases it. A killed shop never reports a
// release.
func TestHoldings(t *testing.T) {
	at := func(ms int, who string, kind history.Kind) history.Event {
		return history.Event{Kind: kind, At: time.UnixMilli(int64(ms)), Purchaser: who}
	}
	for name, c := range map[string]struct {
		events []history.Event
		want   Holding
	}{
		"released":    {[]history.Event{at(0, "a", history.Acquired), at(3, "a", history.Released), at(4, "a", history.Answered)}, Holding{"a", "", 0, 3, "released"}},
		"not held":    {[]history.Event{at(0, "a", history.Acquired), at(3, "a", history.Released), at(4, "a", history.Lost), at(5, "a", history.Answered)}, Holding{"a", "", 0, 3, "not held"}},
		"hung up":     {[]history.Event{at(0, "a", history.Acquired), at(3, "a", history.Answered), at(9, "a", history.Released)}, Holding{"a", "", 0, 9, "released"}},
		"was killed":  {[]history.Event{at(0, "a", history.Acquired), at(3, "a", history.Answered), at(9, "b", history.Call)}, Holding{"a", "", 0, 3, "killed"}},
		"no release":  {[]history.Event{at(0, "a", history.Acquired), at(3, "a", history.Return), at(4, "a", history.Answered)}, Holding{"a", "", 0, 3, "return"}},
		"still there": {[]history.Event{at(0, "a", history.Acquired), at(9, "b", history.Call)}, Holding{"a", "", 0, 9, "never"}},
	} {
		if holdings, _, _ := holdingsIn(c.events); len(holdings) != 1 || holdings[0] != c.want {
			t.Errorf("%s: %+v, want %+v", name, holdings, c.want)
		}
	}
}

func fourCells() Report {
	r := Report{Engine: "local", Started: time.Unix(0, 0), Cells: []Cell{
		{Strategy: "redis", Fault: "pause", Promise: verdict.Oversold, Verdict: verdict.Drifted, Evidence: "1 update <lost>", Replay: "shop verify"},
		{Strategy: "redis", Fault: "rush", Promise: verdict.Holds, Verdict: verdict.Holds, Evidence: "1 of 1 | struck", Replay: "shop verify"},
		{Strategy: "fenced", Fault: "rush", Promise: verdict.Holds, Verdict: verdict.Oversold, Evidence: "2 of 1", Replay: "shop verify"},
		{Strategy: "fenced", Fault: "pause", Promise: verdict.Holds, Verdict: verdict.Inconclusive, Replay: "shop verify"},
	}}
	for i := range r.Cells {
		r.Cells[i].Settle()
	}
	r.Finish()
	return r
}

func write(w io.Writer, r Report, ending string) error {
	format, err := report.ByEnding("report" + ending)
	if err != nil {
		return err
	}
	return format.Write(w, r.Document("shop verify"))
}

// testsuites is a JUnit report as its readers decode it.
type testsuites struct {
	XMLName  xml.Name          `xml:"testsuites"`
	Tests    int               `xml:"tests,attr"`
	Failures int               `xml:"failures,attr"`
	Errors   int               `xml:"errors,attr"`
	Suites   []junit.Testsuite `xml:"testsuite"`
}

// maxMarkdown is GitHub's limit on a step's summary, in bytes.
const maxMarkdown = 1 << 20

// TestUnfinished: a report in which all played cells are as promised does not pass if other cells were not
// played.
func TestUnfinished(t *testing.T) {
	r := fourCells()
	r.Cells = r.Cells[:2]
	if r.Finish(); !r.OK {
		t.Fatal("two cells as promised are not ok")
	}
	r.Unfinish("the shop was not ready")
	var b strings.Builder
	if err := r.Table(&b, false); err != nil || !strings.Contains(b.String(), "unfinished") || !strings.Contains(b.String(), "was not ready") || r.OK {
		t.Errorf("%v, ok %t: %s", err, r.OK, b.String())
	}
}

// TestReports: each format counts two cells as promised, one contradiction, and one inconclusive cell.
func TestReports(t *testing.T) {
	r := fourCells()
	if s := r.Sort(); len(s.Broken) != 1 || len(s.Void) != 1 || len(s.Failed) != 0 || r.OK {
		t.Errorf("%d broken, %d void, %d failed, ok %t", len(s.Broken), len(s.Void), len(s.Failed), r.OK)
	}
	text := func(form func(*strings.Builder) error) string {
		t.Helper()
		var b strings.Builder
		require.NoError(t, form(&b))
		return b.String()
	}
	var suites testsuites
	xmlText := text(func(b *strings.Builder) error { return write(b, r, ".xml") })
	if err := xml.Unmarshal([]byte(xmlText), &suites); err != nil || suites.Tests != 4 || suites.Failures != 1 || suites.Errors != 1 {
		t.Errorf("JUnit: %v, %+v", err, suites)
	}
	if witness := suites.Suites[0].Testcases[1]; witness.Failure != nil || !strings.Contains(witness.SystemOut.Data, "1 update <lost>") {
		t.Errorf("a promised break is a passing case with its witness: %+v", witness)
	}
	var back Report
	if err := json.Unmarshal([]byte(text(func(b *strings.Builder) error { return write(b, r, ".json") })), &back); err != nil || len(back.Cells) != 4 {
		t.Errorf("JSON: %v, %d cells", err, len(back.Cells))
	}
	table, _, _ := strings.Cut(text(func(b *strings.Builder) error { return r.Table(b, false) }), "\n\n")
	if strings.Contains(table+"\n", " \n") {
		t.Errorf("blanks at the end of a line: %q", table)
	}
	expect.Contains(t, text(func(b *strings.Builder) error { return write(b, r, ".md") }), "| `redis` | **breaks** | drifted: pause |  | rush |\n", "the Markdown")
	for name, text := range map[string]string{
		"table":    text(func(b *strings.Builder) error { return r.Table(b, false) }),
		"markdown": text(func(b *strings.Builder) error { return write(b, r, ".md") }),
	} {
		for _, want := range []string{"! oversold", "? inconclusive", "2 as promised, 1 contradict, 1 inconclusive"} {
			expect.Contains(t, text, want, name)
		}
	}
	page := text(func(b *strings.Builder) error { return write(b, r, ".html") })
	if strings.Contains(page, "<lost>") || strings.Contains(page, "src=") || strings.Contains(page, "http") {
		t.Error("the page must escape, and load nothing")
	}
	for _, c := range r.Cells {
		if id := fmt.Sprintf(`id="%s-%s"`, c.Strategy, c.Fault); strings.Count(page, id) != 1 {
			t.Errorf("the page must have one %s, for the matrix to lead to", id)
		}
	}
}

// TestWithoutPromise: a cell without a promise is not counted as promised.
func TestWithoutPromise(t *testing.T) {
	kept, free := Cell{Promise: verdict.Holds, Verdict: verdict.Holds, OK: true}, Cell{Verdict: verdict.Oversold, OK: true}
	for want, cells := range map[string][]Cell{
		"2 as promised, 0 contradict, 0 inconclusive":                      {kept, kept},
		"1 as promised, 0 contradict, 0 inconclusive, 1 without a promise": {kept, free},
	} {
		expect.Equal(t, (Report{Cells: cells}).Sort().counts(), want)
	}
}

// TestFailedCell: a cell whose instrument failed is counted separately, is never as promised, and names likely
// causes in every format.
func TestFailedCell(t *testing.T) {
	r := fourCells()
	r.Cells = append(r.Cells, Cell{Strategy: "mutex", Fault: "crash", Promise: verdict.Oversold, Replay: "shop explore mutex"}.Failed(errors.New("a buyer\ndoes not come back")))
	r.Finish()
	if s := r.Sort(); len(s.Failed) != 1 || len(s.Void) != 1 || s.Failed[0].OK || r.OK {
		t.Errorf("%+v, ok %t", s, r.OK)
	}
	for ending, wants := range map[string][]string{
		".json": {`"harness_error": "a buyer does not come back"`, `"verdict": "inconclusive"`},
		".xml":  {"a buyer does not come back", "does not end", `errors="2"`},
		".md":   {"harness error", "a buyer does not come back", "1 of the harness failed"},
		".html": {"harness error", "a buyer does not come back", "of the harness failed"},
		"":      {"! harness error", "2 as promised, 1 contradict, 1 inconclusive, 1 error of the harness", "a lock or a transaction left on a connection", "shop explore mutex"},
	} {
		var b strings.Builder
		form := func() error { return write(&b, r, ending) }
		if ending == "" {
			form = func() error { return r.Table(&b, false) }
		}
		require.NoError(t, form())
		for _, want := range wants {
			expect.Contains(t, b.String(), want, ending)
		}
	}
}

// TestMarkdownBound: a step's summary is limited to 1 MiB. The page leaves out diagrams
// first, then cells.
func TestMarkdownBound(t *testing.T) {
	witness := func(n int) *DrawnWitness { return &DrawnWitness{Mermaid: strings.Repeat("x", n)} }
	for _, c := range []struct {
		name  string
		spoil func(r *Report)
		want  []string
	}{
		{"a long diagram", func(r *Report) { r.Cells[2].Witness = witness(maxMarkdown) }, []string{"diagram is left out", "### fenced under rush", "### fenced under pause"}},
		{"many diagrams", func(r *Report) {
			for i := range r.Cells {
				r.Cells[i].Witness = witness(maxMarkdown / 2)
			}
		}, []string{"```mermaid", "diagram is left out", "### fenced under pause"}},
		{"long evidence", func(r *Report) { r.Cells[3].Evidence = strings.Repeat("x", maxMarkdown) }, []string{"rest is left out", "### fenced under rush"}},
		{"long evidence of a promised break", func(r *Report) { r.Cells[0].Evidence = strings.Repeat("x", maxMarkdown) }, []string{"### fenced under pause"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := fourCells()
			c.spoil(&r)
			var b strings.Builder
			if err := write(&b, r, ".md"); err != nil || b.Len() > maxMarkdown {
				t.Errorf("%v, %d bytes", err, b.Len())
			}
			for _, want := range c.want {
				expect.Contains(t, b.String(), want)
			}
			if !strings.HasSuffix(b.String(), "\nRun it: `./shop verify`\n") {
				t.Error("the page does not end with how to run it again")
			}
		})
	}
}
