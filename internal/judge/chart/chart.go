// Package chart draws line charts as SVG, for the pages of reports. The caller defines the axes and how
// values are formatted.
//
//	Chart{X, Lines} -> SVG
package chart

import (
	_ "embed"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

//go:embed chart.html
var text string

var page = template.Must(template.New("chart").Parse(text))

// Sizes of a chart, in units of the SVG's viewBox.
const (
	width       = 900.0
	left, right = 70.0, 190.0 // the names of the lines are on the right
	top, bottom = 20.0, 46.0
	row         = 20.0 // vertical distance between two names
	below       = 18.0 // vertical position of the labels, below the axis
	caption     = 38.0 // vertical position of the caption, below the axis
)

// colours are distinguishable with colour blindness (Okabe and Ito, "Color Universal Design", 2008). In print
// without colour, dashes distinguish the lines.
var (
	colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f"}
	dashes  = []string{"1 0", "8 4", "2 3", "10 3 2 3"}
)

// Decimal formats a number: with groups of three digits, and with one decimal below ten.
func Decimal(x float64) string {
	if x < 9.95 && x > 0 {
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return humanize.Comma(int64(math.Round(x)))
}

// A Chart is one line chart.
type Chart struct {
	Title  string // text for screen readers
	Under  string // a line of text below the picture
	Height float64
	X      []Mark // the labelled values of the horizontal axis, above 0, ascending; the axis is logarithmic
	LogY   bool   // vertical axis in powers of ten; otherwise linear from 0
	Show   func(float64) string
	Lines  []Line
}

// A Line is a line of the chart, with its name and its points.
type Line struct {
	Name   string
	Points []Point
}

// A Point is one value, drawn as a dot.
type Point struct {
	X, Y  float64
	Label string
}

// A Mark is a position on the axis.
type Mark struct {
	At    float64
	Label string
}

type drawn struct {
	Width, Height, Left, Right, Top, Bottom float64
	Below, Caption                          float64 // vertical positions of the labels and the caption, below the axis
	Title, Under                            string
	X, Y                                    []tick
	Lines                                   []line
}

type tick struct {
	At    float64
	Label string
}

type line struct {
	Name, Colour, Dash string
	Points             string
	Dots               []dot
	NameY              float64
}

type dot struct {
	X, Y  float64
	Label string
}

// SVG draws the chart. It returns "" if the axis has no value.
func (c Chart) SVG() template.HTML {
	if len(c.X) == 0 {
		return ""
	}
	d := drawn{
		Width: width, Height: c.Height, Left: left, Right: width - right, Top: top, Bottom: c.Height - bottom,
		Below: below, Caption: caption, Title: c.Title, Under: c.Under,
	}
	if names := top + 14 + float64(len(c.Lines))*row; names > d.Height {
		d.Bottom += names - d.Height
		d.Height = names
	}
	low, high := c.ends()
	y, levels := scale(low, high, c.LogY, d.Bottom)
	x := c.across()
	for _, v := range levels {
		d.Y = append(d.Y, tick{y(v), c.Show(v)})
	}
	for _, m := range c.X {
		d.X = append(d.X, tick{x(m.At), m.Label})
	}
	for i, l := range c.Lines {
		d.Lines = append(d.Lines, l.drawn(i, x, func(v float64) float64 {
			if c.LogY { // a logarithmic axis has no position for 0
				v = max(v, low)
			}
			return y(v)
		}))
	}
	var svg strings.Builder
	if err := page.Execute(&svg, d); err != nil {
		panic(err) // template and data belong to this package
	}
	return template.HTML(svg.String()) // #nosec G203 -- the template has escaped it
}

func (l Line) drawn(n int, x, y func(float64) float64) line {
	to := line{Name: l.Name, Colour: colours[n%len(colours)], Dash: dashes[n%len(dashes)], NameY: top + 14 + float64(n)*row}
	var points []string
	for _, p := range l.Points {
		at := dot{X: x(p.X), Y: y(p.Y), Label: p.Label}
		points = append(points, number(at.X)+","+number(at.Y))
		to.Dots = append(to.Dots, at)
	}
	to.Points = strings.Join(points, " ")
	return to
}

// ends returns the lowest positive value and the highest value.
func (c Chart) ends() (low, high float64) {
	low = math.Inf(1)
	for _, l := range c.Lines {
		for _, p := range l.Points {
			if p.Y > 0 {
				low, high = min(low, p.Y), max(high, p.Y)
			}
		}
	}
	if high == 0 {
		return 1, 1
	}
	return low, high
}

// across returns the function from a value to its horizontal position.
func (c Chart) across() func(float64) float64 {
	first, last := c.X[0].At, c.X[len(c.X)-1].At
	return func(v float64) float64 {
		if first == last {
			return (left + width - right) / 2
		}
		return left + math.Log2(v/first)/math.Log2(last/first)*(width-left-right)
	}
}

// scale returns the function from a value to its vertical position, and the labelled values. These are round
// steps from 0, or powers of ten if `log` is true.
func scale(low, high float64, log bool, floor float64) (at func(float64) float64, marks []float64) {
	if log {
		from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
		if from == to {
			to++
		}
		for e := from; e <= to; e++ {
			marks = append(marks, math.Pow(10, e))
		}
		return func(v float64) float64 {
			return floor - (math.Log10(v)-from)/(to-from)*(floor-top)
		}, marks
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for high/step < 4 {
		step /= 2
	}
	to := math.Ceil(high/step) * step
	for v := 0.0; v <= to+step/2; v += step {
		marks = append(marks, v)
	}
	return func(v float64) float64 { return floor - v/to*(floor-top) }, marks
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
