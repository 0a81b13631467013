package verify

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"strings"
)

//go:embed pictures.html
var drawings string

// pictures draws a cell's pictures for a page: the holders of the lock over time, and the violating
// schedule.
type pictures struct{ template *template.Template }

func newPictures() (*pictures, error) {
	t, err := template.New("pictures").Funcs(template.FuncMap{"inside": func(y, by int) int { return y + by }}).Parse(drawings)
	return &pictures{t}, err
}

// holders draws the timeline of a cell as SVG. The cell must have one.
func (p *pictures) holders(c Cell) (template.HTML, error) { return p.draw("holders", bars(c)) }

// sequence draws a witness as SVG.
func (p *pictures) sequence(w *Witness) (template.HTML, error) { return p.draw("sequence", draw(w)) }

// draw executes a template, which escapes its data.
func (p *pictures) draw(name string, what any) (template.HTML, error) {
	var b strings.Builder
	err := p.template.ExecuteTemplate(&b, name, what)
	return template.HTML(b.String()), err // #nosec G203 -- the template has escaped it
}

// A chart is a timeline of holders.
type chart struct {
	Height int
	Bars   []bar
	Ticks  []tick
	Struck *float64 // time of the fault
}

// A bar is a holding on a line of 900 units.
type bar struct {
	Holding
	Y, TextY int
	X, Width float64
	Twice    bool // whether another buyer held at the same time
}

type tick struct {
	X     float64
	Label string
}

// Measures of the chart.
const (
	chartLeft  = 150.0 // width of the names
	chartWidth = 750.0
	barGap     = 24
)

// bars lays out the timeline, which must have at least one holding.
func bars(c Cell) *chart {
	first, last := c.Timeline[0].FromMS, 0.0
	for _, h := range c.Timeline {
		last = max(last, h.ToMS)
	}
	scale := chartWidth / max(last-first, 1)
	x := func(ms float64) float64 { return chartLeft + (ms-first)*scale }
	d := &chart{Height: barGap*len(c.Timeline) + 28}
	for i, h := range c.Timeline {
		b := bar{Holding: h, Y: barGap * i, TextY: barGap*i + 13, X: x(h.FromMS), Width: max((h.ToMS-h.FromMS)*scale, 2)}
		for j, other := range c.Timeline {
			b.Twice = b.Twice || i != j && h.FromMS < other.ToMS && other.FromMS < h.ToMS
		}
		d.Bars = append(d.Bars, b)
	}
	for _, ms := range ticks(first, last) {
		d.Ticks = append(d.Ticks, tick{x(ms), fmt.Sprintf("%g ms", ms)})
	}
	if s := c.StruckMS; s != nil && *s >= first && *s <= last {
		at := x(*s)
		d.Struck = &at
	}
	return d
}

// ticks returns some round numbers between from and to.
func ticks(from, to float64) (all []float64) {
	step := math.Pow(10, math.Floor(math.Log10(max(to-from, 1))))
	for (to-from)/step < 4 {
		step /= 2
	}
	for at := math.Ceil(from/step) * step; at <= to; at += step {
		all = append(all, at)
	}
	return all
}
