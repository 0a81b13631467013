package verify

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/verdict"
)

//go:embed report.html
var page string

// view is what the page shows: what is wrong first, what breaks as promised with
// its pictures, and what holds in a line each.
type view struct {
	Report
	Strategies          []string
	Faults              []promise.Condition
	Wrong, Breaks, Hold []Cell
}

// HTML writes one page that needs nothing else: the matrix, and of each cell
// the evidence and who held the lock when, or the schedule that broke it. folder
// is where the page will be, from which it links to porcupine's pictures.
func (r Report) HTML(w io.Writer, folder string) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"cell":   r.cell,
		"class":  class,
		"bars":   bars,
		"draw":   draw,
		"inside": func(y, by int) int { return y + by },
		"link": func(file string) string {
			from, err1 := filepath.Abs(folder)
			to, err2 := filepath.Abs(file)
			link, err3 := filepath.Rel(from, to)
			if err1 != nil || err2 != nil || err3 != nil {
				return file
			}
			return filepath.ToSlash(link)
		},
		"took": func(ms int64) string { return (time.Duration(ms) * time.Millisecond).Round(time.Second).String() },
	}).Parse(page)
	if err != nil {
		return err
	}
	v := view{Report: r}
	v.Strategies, v.Faults = order(r.Cells)
	for _, c := range r.Cells {
		switch {
		case !c.OK:
			v.Wrong = append(v.Wrong, c)
		case c.Verdict == verdict.Holds:
			v.Hold = append(v.Hold, c)
		default:
			v.Breaks = append(v.Breaks, c)
		}
	}
	return t.Execute(w, v)
}

// class is the colour of a cell.
func class(c Cell) string {
	switch {
	case c.Verdict == verdict.Inconclusive:
		return "void"
	case !c.OK:
		return "contradiction"
	case c.Verdict == verdict.Holds:
		return "holds"
	}
	return "breaks"
}

// A chart is a timeline of holders.
type chart struct {
	Height int
	Bars   []bar
	Ticks  []tick
	Struck *float64 // where the fault struck
}

// A bar is a holding on a line of 900 units.
type bar struct {
	Holding
	Y, TextY int
	X, Width float64
	Twice    bool // somebody else held at the same time
}

type tick struct {
	X     float64
	Label string
}

// Measures of the chart.
const (
	chartLeft  = 150.0 // names stand there
	chartWidth = 750.0
	barGap     = 24
)

// bars lays the timeline out; nil when nobody told of a lock.
func bars(c Cell) *chart {
	if len(c.Timeline) == 0 {
		return nil
	}
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

// ticks are some round numbers between two.
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
