package soak

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/judge/chart"
)

// A picture is a figure over time, for each process or for the buyers.
type picture struct {
	name, title, unit string
	// values returns the values of a sample: one for each process, or the buyers' values. 0 means not measured.
	values func(Sample) []float64
	lines  []string // labels of the values, unless there is one for each process
}

func pictures() []picture {
	used := func(figure func(Use) float64) func(Sample) []float64 {
		return func(s Sample) (values []float64) {
			for _, u := range s.Processes {
				values = append(values, figure(u))
			}
			return values
		}
	}
	return []picture{
		{name: "heap", title: "Heap in use", unit: "MB", values: used(func(u Use) float64 { return u.Heap })},
		{name: "goroutines", title: "Goroutines", unit: "goroutines", values: used(func(u Use) float64 { return float64(u.Goroutines) })},
		{name: "descriptors", title: "Open descriptors", unit: "descriptors", values: used(func(u Use) float64 { return float64(u.Descriptors) })},
		{
			name: "p99", title: "p99 of successful buyers", unit: "ms", lines: []string{"p99"},
			values: func(s Sample) []float64 { return []float64{s.P99MS} },
		},
	}
}

// bands is the maximum number of waves that are drawn one by one. With more waves only the marks are drawn.
const bands = 400

// draw draws the figure. The x axis is the time, with the kinds of waves below it. A vertical line
// marks a killed process or a violated wave.
func (p picture) draw(r Result) template.HTML {
	if len(r.Samples) == 0 {
		return ""
	}
	c := chart.Chart{
		Title: p.title + " over time", Under: "time from the start; upwards " + p.unit + "; grey lines: a process was killed; red lines: a violation",
		Height: 220, X: ticks(r.Took.Seconds()), LogY: p.lines != nil, Show: chart.Decimal,
	}
	names := p.lines
	if names == nil {
		for process := range min(r.Processes, 8) {
			names = append(names, fmt.Sprintf("process %d", process))
		}
	}
	for i, name := range names {
		l := chart.Line{Name: name}
		for _, s := range r.Samples {
			y := math.NaN()
			if values := p.values(s); i < len(values) && values[i] > 0 {
				y = values[i]
			}
			l.Points = append(l.Points, chart.Point{X: s.At, Y: y})
		}
		c.Lines = append(c.Lines, l)
	}
	for _, w := range r.Waves {
		label := fmt.Sprintf("%s: %s, %s, %s", w.Name(), count(int64(w.Clients), "client", "clients"), count(w.Answers.Sales(), "sale", "sales"), count(w.Answers.Refusals(), "refusal", "refusals"))
		if len(r.Waves) <= bands {
			c.Bands = append(c.Bands, chart.Band{From: w.Began, To: w.Ended, Name: w.Kind, Colour: colour(w.Kind), Label: label})
		}
		middle := (w.Began + w.Ended) / 2
		if w.Killed {
			c.Marks = append(c.Marks, chart.Mark{At: middle, Colour: "#7f7f7f", Label: fmt.Sprintf("%s: process %d was killed", w.Name(), w.Process)})
		}
		if len(w.Violations) > 0 {
			c.Marks = append(c.Marks, chart.Mark{At: w.Ended, Colour: "#c62828", Label: w.Name() + ": " + strings.Join(w.Violations, "; ")})
		}
	}
	return c.SVG()
}

// colour returns the color of a kind, which is the same in every picture.
func colour(kind string) string {
	return chart.Colour(slices.IndexFunc(Kinds(), func(k Kind) bool { return k.Name == kind }))
}

// ticks returns at most ten round times, and the end without a label.
func ticks(end float64) (marks []chart.Mark) {
	steps := []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute,
		5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour,
	}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if end/s.Seconds() <= 10 {
			step = s
			break
		}
	}
	at := time.Duration(0)
	for ; at.Seconds() < end; at += step {
		marks = append(marks, chart.Mark{At: at.Seconds(), Label: short(at)})
	}
	return append(marks, chart.Mark{At: end})
}

// span describes the range of the figure.
func (p picture) span(r Result) string {
	low, high := math.Inf(1), 0.0
	for _, s := range r.Samples {
		for _, v := range p.values(s) {
			if v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if high == 0 {
		return "nothing was measured"
	}
	return fmt.Sprintf("from %s to %s %s", chart.Decimal(low), chart.Decimal(high), p.unit)
}
