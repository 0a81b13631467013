package chart_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/chart"
)

// TestSVG: each line has a polyline and its dots, and a value of 0 is at the bottom of a logarithmic axis.
func TestSVG(t *testing.T) {
	c := chart.Chart{
		Title: "heap <b>", Height: 200, Show: func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) },
		X: []chart.Mark{{At: 1, Label: "1"}, {At: 16, Label: "16"}},
		Lines: []chart.Line{
			{Name: "one", Points: []chart.Point{{X: 1, Y: 1}, {X: 4, Y: 2}, {X: 16, Y: 3}}},
			{Name: "two", Points: []chart.Point{{X: 1, Y: 0, Label: "here"}}},
		},
	}
	for _, log := range []bool{false, true} {
		c.LogY = log
		svg := string(c.SVG())
		for what, want := range map[string]int{"<polyline": 2, "<circle": 4, "<title>here": 1, "NaN": 0, "Inf": 0, "<b>": 0} {
			expect.Equal(t, strings.Count(svg, what), want, what, "log", log, svg)
		}
	}
	expect.Equal(t, (chart.Chart{}).SVG(), "", "an empty chart")
}
