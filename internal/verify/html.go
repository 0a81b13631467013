package verify

import (
	_ "embed"
	"html/template"
	"io"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/verdict"
)

//go:embed report.html
var page string

// HTML writes one page that needs nothing else: the matrix, and of each cell
// the evidence and who held the lock when.
func (r Report) HTML(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"cell":   r.cell,
		"class":  class,
		"bars":   bars,
		"height": func(b []bar) int { return 18 * len(b) },
		"took":   func(ms int64) string { return (time.Duration(ms) * time.Millisecond).Round(time.Second).String() },
	}).Parse(page)
	if err != nil {
		return err
	}
	strategies, faults := order(r.Cells)
	broken, void := r.Broken()
	return t.Execute(w, struct {
		Report
		Strategies   []string
		Faults       []lockstrategy.Fault
		Broken, Void int
	}{r, strategies, faults, len(broken), len(void)})
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

// A bar is a holding on a line of 1000 units.
type bar struct {
	Holding
	Y, TextY, X, Width float64
	Twice              bool // somebody else held at the same time
}

// bars lays the timeline out.
func bars(c Cell) (all []bar) {
	if len(c.Timeline) == 0 {
		return nil
	}
	first, last := c.Timeline[0].FromMS, 0.0
	for _, h := range c.Timeline {
		last = max(last, h.ToMS)
	}
	scale := 1000 / max(last-first, 1)
	for i, h := range c.Timeline {
		b := bar{Holding: h, Y: float64(18 * i), TextY: float64(18*i + 11), X: (h.FromMS - first) * scale, Width: max((h.ToMS-h.FromMS)*scale, 2)}
		for j, other := range c.Timeline {
			b.Twice = b.Twice || i != j && h.FromMS < other.ToMS && other.FromMS < h.ToMS
		}
		all = append(all, b)
	}
	return all
}
