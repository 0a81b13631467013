package chart_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/judge/chart"
)

// TestSVG: a gap cuts a line, a label makes a dot, and bands with the same colour have one key.
func TestSVG(t *testing.T) {
	c := chart.Chart{
		Title: "heap <b>", Height: 200, Show: func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) },
		X: []chart.Mark{{At: 0, Label: "0s"}, {At: 10, Label: "10s"}},
		Lines: []chart.Line{
			{Name: "one", Points: []chart.Point{{X: 0, Y: 1}, {X: 1, Y: 2}, {X: 2, Y: math.NaN()}, {X: 3, Y: 3}}},
			{Name: "two", Points: []chart.Point{{X: 0, Y: 0, Label: "here"}}},
		},
		Bands: []chart.Band{{From: 0, To: 1, Name: "steady", Colour: "red"}, {From: 2, To: 3, Name: "steady", Colour: "red"}},
		Marks: []chart.Mark{{At: 5, Label: "kill", Colour: "black"}},
	}
	for _, log := range []bool{false, true} {
		c.LogY = log
		svg := string(c.SVG())
		for what, want := range map[string]int{"<polyline": 3, "<circle": 1, "<rect": 3, "<title>kill": 1, "NaN": 0, "Inf": 0, "<b>": 0} {
			if got := strings.Count(svg, what); got != want {
				t.Errorf("log %t: %d times %q, want %d:\n%s", log, got, what, want, svg)
			}
		}
	}
	if svg := (chart.Chart{}).SVG(); svg != "" {
		t.Errorf("draws nothing as %q", svg)
	}
}
