package sweep

import (
	"html/template"

	"github.com/dustin/go-humanize"

	"github.com/oversell/oversell/internal/judge/chart"
)

// picture draws one figure of a sweep. The x axis shows the number of clients in powers of two; each strategy
// has a line.
func (r Result) picture(m figure) template.HTML {
	if len(r.Points) == 0 {
		return ""
	}
	c := chart.Chart{
		Title: m.title + " by the number of clients", Under: "clients, each of which asks again when it is answered; upwards " + m.unit,
		Height: 380, LogY: m.log, Show: m.show,
	}
	for _, n := range r.Clients {
		c.X = append(c.X, chart.Mark{At: float64(n), Label: humanize.Comma(int64(n))})
	}
	for _, name := range r.strategies() {
		l := chart.Line{Name: name}
		for _, p := range r.of(name) {
			l.Points = append(l.Points, chart.Point{
				X: float64(p.Clients), Y: m.value(p), Label: name + ", " + clients(p.Clients) + ": " + m.show(m.value(p)) + " " + m.unit,
			})
		}
		c.Lines = append(c.Lines, l)
	}
	return c.SVG()
}
