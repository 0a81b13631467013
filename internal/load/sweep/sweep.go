// Package sweep shows what strategies sell, and how long buyers wait, over the number of
// clients.
//
//	rounds of measure.Load -> Add -> Result -> table, page with pictures, JSON
package sweep

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/oversell/oversell/internal/judge/chart"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/load/sizing/measure"
)

// A Result is one sweep: each strategy with each number of clients.
type Result struct {
	Server    string        `json:"server"`
	Cores     int           `json:"cores"`
	Processes int           `json:"processes"` // of the shop
	Round     time.Duration `json:"round_ns"`  // how long one lasts, its warm-up too
	Clients   []int         `json:"clients"`   // rising
	Points    []Point       `json:"points"`    // strategy by strategy, clients rising
	Others    float64       `json:"others"`    // processors that others on the machine used, on average
	LeftOut   []string      `json:"left_out,omitempty"`

	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took_ns"`
}

// A Point is a strategy with so many clients, each of whom asks again when it is answered.
type Point struct {
	Strategy  string    `json:"strategy"`
	Clients   int       `json:"clients"`
	PerSecond float64   `json:"per_second"` // sales, the median of Rounds
	P50MS     float64   `json:"p50_ms"`     // of those who were sold to: medians of the rounds
	P99MS     float64   `json:"p99_ms"`
	Refused   float64   `json:"refused"`            // share of the answers that were no sale, 0 to 1
	FirstNo   string    `json:"first_no,omitempty"` // the first of these
	Rounds    []float64 `json:"rounds"`             // sales a second
}

// Of makes a point of its rounds, at least one.
func Of(strategy string, clients int, rounds []measure.Round) Point {
	milliseconds := func(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e3 }
	p := Point{
		Strategy: strategy, Clients: clients,
		PerSecond: measure.Median(rounds, func(r measure.Round) float64 { return r.PerSecond }),
		P50MS:     measure.Median(rounds, func(r measure.Round) float64 { return milliseconds(r.P50) }),
		P99MS:     measure.Median(rounds, func(r measure.Round) float64 { return milliseconds(r.P99) }),
		Refused:   measure.Median(rounds, func(r measure.Round) float64 { return r.Refused }),
	}
	for _, r := range rounds {
		p.Rounds = append(p.Rounds, r.PerSecond)
		if p.FirstNo == "" {
			p.FirstNo = r.FirstNo
		}
	}
	return p
}

// A figure of a point, and how it is shown.
type figure struct {
	title string
	unit  string
	value func(Point) float64
	show  func(float64) string
	log   bool // its axis
}

var figures = []figure{
	{title: "Sales a second", unit: "sales/s", value: func(p Point) float64 { return p.PerSecond }, show: func(x float64) string { return humanize.Comma(int64(math.Round(x))) }},
	{title: "p99 of those who were sold to", unit: "ms", value: func(p Point) float64 { return p.P99MS }, show: chart.Decimal, log: true},
}

// refusals are shown where there are any.
var refusals = figure{
	title: "Answers that were no sale", unit: "%", value: func(p Point) float64 { return 100 * p.Refused }, show: chart.Decimal,
}

// shown are the figures that have something to show.
func (r Result) shown() []figure {
	for _, p := range r.Points {
		if p.Refused > 0 {
			return append(slices.Clone(figures), refusals)
		}
	}
	return figures
}

// strategies are those of the points, in their order.
func (r Result) strategies() (names []string) {
	for _, p := range r.Points {
		if !slices.Contains(names, p.Strategy) {
			names = append(names, p.Strategy)
		}
	}
	return names
}

// of are the points of a strategy, clients rising.
func (r Result) of(strategy string) (points []Point) {
	for _, p := range r.Points {
		if p.Strategy == strategy {
			points = append(points, p)
		}
	}
	return points
}

// Lead says what was measured, without a full stop.
func (r Result) Lead() string {
	shops := "one shop process"
	if r.Processes > 1 {
		shops = fmt.Sprintf("%d shop processes", r.Processes)
	}
	rounds := 0
	for _, p := range r.Points {
		rounds = max(rounds, len(p.Rounds))
	}
	return fmt.Sprintf("%s, %s, %d processors that servers, shop and clients share; medians of %d rounds of %s", r.Server, shops, r.Cores, rounds, r.Round)
}

// Notes are what else is to be known.
func (r Result) Notes() (notes []string) {
	const quiet = 0.2
	if r.Others > quiet {
		notes = append(notes, fmt.Sprintf("others used %.1f processors meanwhile: compare lines, and not with another run", r.Others))
	}
	said := map[string]bool{}
	for _, p := range r.Points {
		if p.FirstNo != "" && !said[p.Strategy] {
			said[p.Strategy] = true
			notes = append(notes, fmt.Sprintf("%s, %d clients, the first who was sold nothing: %s", p.Strategy, p.Clients, p.FirstNo))
		}
	}
	for _, why := range r.LeftOut {
		notes = append(notes, "left out: "+why)
	}
	return notes
}

// Print writes a table for each figure.
func (r Result) Print(w io.Writer, _ bool) error {
	if _, err := fmt.Fprintln(w, r.Lead()); err != nil {
		return err
	}
	for _, m := range r.shown() {
		if _, err := fmt.Fprintf(w, "\n%s\n", r.table(m).Terminal(report.Look{})); err != nil {
			return err
		}
	}
	for i, note := range r.Notes() {
		if i == 0 {
			note = "\n" + note
		}
		if _, err := fmt.Fprintln(w, note); err != nil {
			return err
		}
	}
	return nil
}

func clients(n int) string {
	if n == 1 {
		return "1 client"
	}
	return humanize.Comma(int64(n)) + " clients"
}

// Document is the result as a report, with a picture of each figure.
func (r Result) Document() report.Document {
	d := report.Document{
		Command: "shop bench", Title: "What each strategy sells, by the number of clients", Lead: r.Lead(),
		Started: r.Started, Took: r.Took, Notes: r.Notes(), Groups: []report.Group{{Heading: "Pictures"}}, Value: r,
	}
	for _, m := range r.shown() {
		d.Tables = append(d.Tables, r.table(m))
		d.Cases = append(d.Cases, report.Case{
			Suite: "bench", Name: m.unit, Title: m.title, Seen: r.best(m), Details: []report.Detail{{Picture: r.picture(m)}},
		})
	}
	return d
}

// table has a row a strategy, and a column a number of clients.
func (r Result) table(m figure) report.Table {
	t := report.Table{Columns: []report.Column{{Name: m.title + ", " + m.unit}}}
	for _, n := range r.Clients {
		t.Columns = append(t.Columns, report.Column{Name: clients(n), Numbers: true})
	}
	for _, name := range r.strategies() {
		row := []report.Cell{{Text: name, Code: true}}
		for _, p := range r.of(name) {
			row = append(row, report.Cell{Text: m.show(m.value(p))})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// best is the highest point of a figure.
func (r Result) best(m figure) string {
	if len(r.Points) == 0 {
		return "nothing was measured"
	}
	top := slices.MaxFunc(r.Points, func(a, b Point) int {
		switch {
		case m.value(a) < m.value(b):
			return -1
		case m.value(a) > m.value(b):
			return 1
		}
		return 0
	})
	return fmt.Sprintf("the highest is %s %s: %s, %s", m.show(m.value(top)), m.unit, top.Strategy, clients(top.Clients))
}
