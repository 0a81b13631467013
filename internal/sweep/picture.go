package sweep

import (
	_ "embed"
	"html/template"
	"math"
	"strconv"
	"strings"
)

//go:embed picture.html
var pictureText string

var pictureTemplate = template.Must(template.New("picture").Parse(pictureText))

// Sizes of a picture, in its own units.
const (
	width, height = 900.0, 380.0
	left, right   = 70.0, 190.0 // the names of the lines stand right
	top, bottom   = 20.0, 46.0
)

// colours are told apart by who sees few of them (Okabe and Ito, "Color Universal Design",
// 2008); the dashes tell them apart in grey.
var (
	colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f"}
	dashes  = []string{"none", "8 4", "2 3", "10 3 2 3"}
)

type tick struct {
	At    float64
	Label string
}

type line struct {
	Name, Colour, Dash, Points string
	Dots                       []dot
	NameY                      float64
}

type dot struct {
	X, Y  float64
	Label string
}

// picture draws a measure: clients to the right, by powers of two; a line a strategy.
func (r Result) picture(m measure) template.HTML {
	if len(r.Points) == 0 {
		return ""
	}
	low, high := math.Inf(1), 0.0
	for _, p := range r.Points {
		if v := m.value(p); v > 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	if high == 0 {
		low, high = 1, 1
	}
	y, levels := scale(low, high, m.log)
	first, last := float64(r.Clients[0]), float64(r.Clients[len(r.Clients)-1])
	x := func(n int) float64 {
		if first == last {
			return (left + width - right) / 2
		}
		return left + math.Log2(float64(n)/first)/math.Log2(last/first)*(width-left-right)
	}
	picture := struct {
		Width, Height, Left, Right, Top, Bottom float64
		Title, Unit                             string
		X, Y                                    []tick
		Lines                                   []line
	}{Width: width, Height: height, Left: left, Right: width - right, Top: top, Bottom: height - bottom, Title: m.title, Unit: m.unit}
	for _, v := range levels {
		picture.Y = append(picture.Y, tick{y(v), m.show(v)})
	}
	for _, n := range r.Clients {
		picture.X = append(picture.X, tick{x(n), whole(float64(n))})
	}
	for i, name := range r.strategies() {
		l := line{Name: name, Colour: colours[i%len(colours)], Dash: dashes[i%len(dashes)], NameY: top + 14 + float64(i)*20}
		var points []string
		for _, p := range r.of(name) {
			v := m.value(p)
			if m.log { // which has no place for 0
				v = max(v, low)
			}
			d := dot{x(p.Clients), y(v), name + ", " + clients(p.Clients) + ": " + m.show(m.value(p)) + " " + m.unit}
			points = append(points, number(d.X)+","+number(d.Y))
			l.Dots = append(l.Dots, d)
		}
		l.Points = strings.Join(points, " ")
		picture.Lines = append(picture.Lines, l)
	}
	var text strings.Builder
	if err := pictureTemplate.Execute(&text, picture); err != nil {
		panic(err) // the template and its data are this file's
	}
	return template.HTML(text.String()) // #nosec G203 -- the template has escaped it
}

// scale is where a value stands, and the values that are marked: from 0 by round steps, or
// by powers of ten.
func scale(low, high float64, log bool) (at func(float64) float64, marks []float64) {
	floor := height - bottom
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
