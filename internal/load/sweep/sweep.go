// Package sweep measures the sales per second and the waits of each strategy with different numbers of clients.
//
//	rounds of measure.Load -> Add -> Result -> table, page with pictures, JSON
package sweep

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/oversell/oversell/internal/judge/chart"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/load/measure"
	"github.com/oversell/oversell/internal/plural"
)

// A Result is one sweep of strategies and numbers of clients.
type Result struct {
	Server    string        `json:"server"`
	Database  string        `json:"-"` // name of the database in the catalogue of strategies
	Cores     int           `json:"cores"`
	Processes int           `json:"processes"` // processes of the shop
	Round     time.Duration `json:"round_ns"`  // length of one round, warm-up included
	Clients   []int         `json:"clients"`   // numbers of clients, rising
	Points    []Point       `json:"points"`    // grouped by strategy, clients rising
	Sections  []Section     `json:"sections,omitempty"`
	Others    float64       `json:"others"` // average number of processors that other programs used
	LeftOut   []string      `json:"left_out,omitempty"`
	Unsafe    []string      `json:"unsafe,omitempty"` // strategies that a rush or a fault breaks; tables mark them

	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took_ns"`
}

// A Point is the result of one strategy with one number of clients. Each client asks again when it is answered.
type Point struct {
	Strategy  string    `json:"strategy"`
	Clients   int       `json:"clients"`
	PerSecond float64   `json:"per_second"` // sales per second, the median of Rounds
	P50MS     float64   `json:"p50_ms"`     // p50 and p99 of the served buyers' waits, each the median over the rounds
	P99MS     float64   `json:"p99_ms"`
	Refused   float64   `json:"refused"`            // share of answers without a sale, 0 to 1
	FirstNo   string    `json:"first_no,omitempty"` // the first answer without a sale
	Rounds    []float64 `json:"rounds"`             // sales per second of each round
}

// Of returns the point of one or more rounds.
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
		p.FirstNo = cmp.Or(p.FirstNo, r.FirstNo)
	}
	return p
}

// A figure is one number of each point, and how it is shown.
type figure struct {
	title string
	unit  string
	value func(Point) float64
	show  func(float64) string
	log   bool // logarithmic axis
}

var figures = []figure{
	{title: "Sales a second", unit: "sales/s", value: func(p Point) float64 { return p.PerSecond }, show: func(x float64) string { return humanize.Comma(int64(math.Round(x))) }},
	{title: "p99 of successful buyers", unit: "ms", value: func(p Point) float64 { return p.P99MS }, show: chart.Decimal, log: true},
}

// refusals is shown only if a client was refused.
var refusals = figure{
	title: "Answers that were no sale", unit: "%", value: func(p Point) float64 { return 100 * p.Refused }, show: chart.Decimal,
}

func (r Result) shown() []figure {
	for _, p := range r.Points {
		if p.Refused > 0 {
			return append(slices.Clone(figures), refusals)
		}
	}
	return figures
}

func (r Result) strategies() (names []string) {
	for _, p := range r.Points {
		if !slices.Contains(names, p.Strategy) {
			names = append(names, p.Strategy)
		}
	}
	return names
}

func (r Result) of(strategy string) (points []Point) {
	for _, p := range r.Points {
		if p.Strategy == strategy {
			points = append(points, p)
		}
	}
	return points
}

// Lead describes the measurement in one sentence without its full stop.
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

// Notes returns further remarks on the measurement.
func (r Result) Notes() (notes []string) {
	const quiet = 0.2
	if r.Others > quiet {
		notes = append(notes, fmt.Sprintf("other programs used %.1f processors, so compare rows of this run only", r.Others))
	}
	said := map[string]bool{}
	for _, p := range r.Points {
		if p.FirstNo != "" && !said[p.Strategy] {
			said[p.Strategy] = true
			notes = append(notes, fmt.Sprintf("%s, %d clients, the first answer without a sale: %s", p.Strategy, p.Clients, p.FirstNo))
		}
	}
	if slices.ContainsFunc(r.strategies(), func(name string) bool { return slices.Contains(r.Unsafe, name) }) {
		notes = append(notes, "A strategy with * is not safe; see docs/guides/choose-a-strategy.md.")
	}
	if len(r.Sections) > 0 {
		notes = append(notes, "A lease must outlast the section. After a crash it blocks the product for as long as it lasts.")
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
	for _, t := range r.tables() {
		if _, err := fmt.Fprintf(w, "\n%s\n", t.Terminal(report.Look{})); err != nil {
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

func clients(n int) string { return humanize.Comma(int64(n)) + plural.Word(n, " client", " clients") }

// Document returns the result as a report with a picture of each figure.
func (r Result) Document() report.Document {
	d := report.Document{
		Command: "shop bench", Title: "What each strategy sells, by the number of clients", Lead: r.Lead(),
		Started: r.Started, Took: r.Took, Notes: r.Notes(), Groups: []report.Group{{Heading: "Pictures"}}, Value: r,
		Tables: r.tables(),
	}
	for _, m := range r.shown() {
		d.Cases = append(d.Cases, report.Case{
			Suite: "bench", Name: m.unit, Title: m.title, Seen: r.best(m), Details: []report.Detail{{Picture: r.picture(m)}},
		})
	}
	return d
}

// tables returns a table for each figure, and one of the critical sections if they were measured.
func (r Result) tables() (all []report.Table) {
	for _, m := range r.shown() {
		all = append(all, r.table(m))
	}
	if len(r.Sections) > 0 {
		all = append(all, r.sectionTable())
	}
	return all
}

func (r Result) table(m figure) report.Table {
	t := report.Table{Columns: []report.Column{{Name: m.title + ", " + m.unit}}}
	for _, n := range r.Clients {
		t.Columns = append(t.Columns, report.Column{Name: clients(n), Numbers: true})
	}
	for _, name := range r.strategies() {
		row := []report.Cell{{Text: r.label(name), Code: true}}
		for _, p := range r.of(name) {
			row = append(row, report.Cell{Text: m.show(m.value(p))})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (r Result) label(strategy string) string {
	if slices.Contains(r.Unsafe, strategy) {
		return strategy + " *"
	}
	return strategy
}

func (r Result) best(m figure) string {
	if len(r.Points) == 0 {
		return "nothing was measured"
	}
	top := slices.MaxFunc(r.Points, func(a, b Point) int { return cmp.Compare(m.value(a), m.value(b)) })
	return fmt.Sprintf("the highest is %s %s: %s, %s", m.show(m.value(top)), m.unit, top.Strategy, clients(top.Clients))
}
