package soak

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/chart"
	"github.com/oversell/oversell/internal/judge/report"
)

// A Result is the result of one soak.
type Result struct {
	Seed       uint64        `json:"seed"`
	Server     string        `json:"server"`
	Cores      int           `json:"cores"`
	Processes  int           `json:"processes"`
	Strategies []string      `json:"strategies"`
	Clients    int           `json:"clients"` // at most
	Wave       time.Duration `json:"wave_ns"`
	Asked      time.Duration `json:"duration_ns"` // requested duration
	Kill       bool          `json:"kill"`
	Flags      string        `json:"-"` // engine flags for Command

	Waves       []Waved  `json:"waves"`
	Samples     []Sample `json:"samples"`
	Rests       []Rest   `json:"at_rest"`
	Trends      []Trend  `json:"trends"`
	LeftOut     []string `json:"left_out,omitempty"`
	Interrupted bool     `json:"interrupted,omitempty"`

	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took_ns"`
}

// A Waved is a wave with its result.
type Waved struct {
	Wave
	Began      float64      `json:"began"` // seconds from the start
	Ended      float64      `json:"ended"`
	Answers    Answers      `json:"answers"`
	Audited    audit.Report `json:"audited"`
	Killed     bool         `json:"killed,omitempty"`
	Violations []string     `json:"violations,omitempty"`
	Void       string       `json:"void,omitempty"` // why it showed nothing

	began time.Time
}

// Name returns the wave as one line, for messages about violations.
func (w Waved) Name() string { return fmt.Sprintf("wave %d (%s, %s)", w.Number, w.Kind, w.Strategy) }

// A Sample has the resources of the processes at one moment, and the answers since the previous
// sample.
type Sample struct {
	At        float64 `json:"at"`      // seconds from the start
	Seconds   float64 `json:"seconds"` // since the previous sample
	Sold      int     `json:"sold"`
	Refused   int     `json:"refused"`
	P99MS     float64 `json:"p99_ms"` // of successful buyers; 0 without any
	Processes []Use   `json:"processes"`
}

// sums has the totals of all waves.
type sums struct{ waves, kills, violated, drifted, void, sales, refusals int64 }

func (r Result) sums() (s sums) {
	for _, w := range r.Waves {
		s.waves++
		s.sales += w.Answers.Sales()
		s.refusals += w.Answers.Refusals()
		if w.Killed {
			s.kills++
		}
		if len(w.Violations) > 0 {
			s.violated++
		}
		if w.Audited.Drift != 0 {
			s.drifted++
		}
		if w.Void != "" {
			s.void++
		}
	}
	return s
}

// Violated returns the number of waves with a violation.
func (r Result) Violated() int { return int(r.sums().violated) }

// Void returns the number of waves that showed nothing.
func (r Result) Void() int { return int(r.sums().void) }

// Lead describes the run, without a full stop.
func (r Result) Lead() string {
	return fmt.Sprintf("%s, %s, %d processors that servers, shops and clients share; seed %d; waves of %s, up to %s; %s",
		r.Server, count(int64(r.Processes), "shop process", "shop processes"), r.Cores, r.Seed, short(r.Wave), count(int64(r.Clients), "client", "clients"), strings.Join(r.Strategies, ", "))
}

// Verdict returns the result of the run as one line.
func (r Result) Verdict() string {
	s := r.sums()
	drift := "drift 0 in all"
	if s.drifted > 0 {
		drift = "drift in " + humanize.Comma(s.drifted)
	}
	line := fmt.Sprintf("%s, %s, %s, %s; %s; void: %s", count(s.waves, "wave", "waves"), count(s.sales, "sale", "sales"),
		count(s.refusals, "refusal", "refusals"), count(s.kills, "kill", "kills"), drift, humanize.Comma(s.void))
	if s.violated > 0 {
		line += "; violated: " + humanize.Comma(s.violated)
	}
	for _, t := range r.Trends {
		if t.Grows {
			line += "; " + t.What + " of " + t.name() + ": grows"
		}
	}
	if r.Interrupted {
		line += "; interrupted after " + short(r.Took.Round(time.Second))
	}
	return line
}

// name distinguishes a process from its predecessors.
func (t Trend) name() string {
	name := fmt.Sprintf("process %d", t.Process)
	if t.Life > 0 {
		name += fmt.Sprintf(", started for the %s time", humanize.Ordinal(t.Life+1))
	}
	return name
}

// said returns the trend of the process that served longest in each place. Processes that were killed
// after a few waves have no trend.
func (r Result) said() (lines []string) {
	longest := map[int]int{}
	for _, t := range r.Trends {
		longest[t.Process] = max(longest[t.Process], t.Waves)
	}
	seen := map[string]bool{}
	for _, t := range r.Trends {
		key := fmt.Sprint(t.Process, t.What)
		if t.Waves < longest[t.Process] && !t.Grows || seen[key] && !t.Grows {
			continue
		}
		seen[key] = true
		line := fmt.Sprintf("at rest, %s, after its first wave and after its %s: %d %s, %d", t.name(), humanize.Ordinal(t.Waves), t.First, t.What, t.Last)
		switch {
		case t.Grows:
			line += ": grows, in each quarter of its time"
		case t.Waves < enough:
			line += fmt.Sprintf("; whether it grows takes %d waves", enough)
		}
		lines = append(lines, line)
	}
	return lines
}

// Notes returns further remarks.
func (r Result) Notes() (notes []string) {
	notes = r.said()
	for _, w := range r.Waves {
		for _, v := range w.Violations {
			notes = append(notes, "violated in "+w.Name()+": "+v)
		}
	}
	voids := 0
	for _, w := range r.Waves {
		if voids++; w.Void != "" && voids <= 10 {
			notes = append(notes, "void: "+w.Name()+": "+w.Void)
		} else if w.Void == "" {
			voids--
		}
	}
	for _, why := range r.LeftOut {
		notes = append(notes, "left out: "+why)
	}
	return notes
}

// rows is the maximum number of rows in the table over time.
const rows = 12

// A row covers a span of time, with the highest resource usage of any process.
type row struct {
	from          float64
	use           Use
	p99           float64
	sold, seconds float64
}

// overTime divides the samples evenly into rows.
func (r Result) overTime() (all []row) {
	n := min(rows, len(r.Samples))
	for i := range n {
		part := r.Samples[i*len(r.Samples)/n : (i+1)*len(r.Samples)/n]
		to := row{from: part[0].At - part[0].Seconds}
		for _, s := range part {
			to.sold += float64(s.Sold)
			to.seconds += s.Seconds
			to.p99 = max(to.p99, s.P99MS)
			for _, u := range s.Processes {
				to.use.Heap = max(to.use.Heap, u.Heap)
				to.use.Resident = max(to.use.Resident, u.Resident)
				to.use.Goroutines = max(to.use.Goroutines, u.Goroutines)
				to.use.Descriptors = max(to.use.Descriptors, u.Descriptors)
			}
		}
		all = append(all, to)
	}
	return all
}

var columns = []string{"at", "heap, MB", "resident, MB", "goroutines", "descriptors", "p99, ms", "sold/s"}

func (t row) cells() []string {
	p99 := "-"
	if t.p99 > 0 {
		p99 = chart.Decimal(t.p99)
	}
	return []string{
		short(time.Duration(max(0, t.from)+0.5) * time.Second), chart.Decimal(t.use.Heap), chart.Decimal(t.use.Resident),
		humanize.Comma(int64(t.use.Goroutines)), humanize.Comma(int64(t.use.Descriptors)), p99, chart.Decimal(t.sold / max(t.seconds, 0.001)),
	}
}

// tableNote explains the numbers of the table.
const tableNote = "The highest value of any process; p99 of successful buyers, from the worst sample."

// Print writes the resource usage over time, and the verdict.
func (r Result) Print(w io.Writer, _ bool) error {
	lines := []string{r.Lead(), "", r.table().Terminal(report.Look{}), tableNote, ""}
	lines = append(lines, r.Notes()...)
	lines = append(lines, r.Verdict())
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// Document returns the result as a report with pictures over time.
func (r Result) Document() report.Document {
	s := r.sums()
	d := report.Document{
		Command: "shop soak", Title: "A shop under changing load, audited after each wave", Lead: r.Lead(),
		Started: r.Started, Took: r.Took, Notes: append([]string{r.Verdict()}, r.Notes()...), Value: r,
		Groups: []report.Group{{Heading: "Violations"}, {Heading: "Over time"}, {Heading: "Strategies", Brief: true, Columns: [3]string{"", "strategy", "seen"}}},
		Sums: []report.Sum{
			{Count: int(s.waves), What: "waves"},
			{Count: int(s.sales), What: "sales"},
			{Count: int(s.refusals), What: "refusals"},
			{Count: int(s.kills), What: "kills"},
			{Count: int(s.violated), What: "violated", Status: report.Contradicts},
			{Count: int(s.void), What: "void", Status: report.Void},
		},
	}
	if r.Interrupted {
		d.Alarm = "it was interrupted"
	}
	d.Tables = []report.Table{r.kinds(), r.table()}
	for _, w := range r.Waves {
		if len(w.Violations) > 0 {
			d.Cases = append(d.Cases, report.Case{
				Suite: "wave", Name: strconv.Itoa(w.Number), Title: w.Name(), Word: "violated", Status: report.Contradicts,
				Seen: strings.Join(w.Violations, "; "), Small: []string{fmt.Sprintf("%+v", w.Answers)}, Command: r.Command(),
			})
		}
	}
	for _, p := range pictures() {
		d.Cases = append(d.Cases, report.Case{Group: 1, Suite: "time", Name: p.name, Title: p.title, Seen: p.span(r), Details: []report.Detail{{Picture: p.draw(r)}}})
	}
	for _, name := range r.Strategies {
		d.Cases = append(d.Cases, r.strategy(name))
	}
	return d
}

// table returns the table of Print.
func (r Result) table() report.Table {
	t := report.Table{Note: tableNote}
	for _, name := range columns {
		t.Columns = append(t.Columns, report.Column{Name: name, Numbers: name != columns[0]})
	}
	for _, over := range r.overTime() {
		var line []report.Cell
		for _, cell := range over.cells() {
			line = append(line, report.Cell{Text: cell})
		}
		t.Rows = append(t.Rows, line)
	}
	return t
}

// kinds returns a table of the waves by kind.
func (r Result) kinds() report.Table {
	t := report.Table{Columns: []report.Column{{Name: "waves"}, {Name: "of this kind", Numbers: true}, {Name: "sound", Numbers: true}, {Name: "violated", Numbers: true}, {Name: "void", Numbers: true}, {Name: "what it is"}}}
	for _, k := range Kinds() {
		var all, violated, void int64
		for _, w := range r.Waves {
			if w.Kind != k.Name {
				continue
			}
			all++
			if len(w.Violations) > 0 {
				violated++
			}
			if w.Void != "" {
				void++
			}
		}
		t.Rows = append(t.Rows, []report.Cell{
			{Text: k.Name}, {Text: humanize.Comma(all)}, {Text: humanize.Comma(all - violated - void)}, {Text: humanize.Comma(violated)}, {Text: humanize.Comma(void)}, {Text: k.About},
		})
	}
	return t
}

// strategy returns the totals of a strategy's waves.
func (r Result) strategy(name string) report.Case {
	part := Result{Waves: slices.DeleteFunc(slices.Clone(r.Waves), func(w Waved) bool { return w.Strategy != name })}
	s := part.sums()
	c := report.Case{Group: 2, Suite: "soak", Name: name, Title: name, Word: "holds", Status: report.Holds, Seen: part.Verdict()}
	switch {
	case s.violated > 0:
		c.Word, c.Status, c.Command = "violated", report.Contradicts, r.Command()
	case s.void == s.waves:
		c.Word, c.Status = "inconclusive", report.Void
	}
	return c
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(n) + " " + many
}

// short formats a duration without zeros: 5m and not 5m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
