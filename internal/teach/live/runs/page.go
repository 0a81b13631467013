package runs

import (
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/teach/live"
)

// Page writes the run as a self-contained HTML file.
func (run Run) Page(w io.Writer) error {
	format, err := report.ByEnding("run.html")
	if err != nil {
		return err
	}
	document, err := run.document()
	if err != nil {
		return err
	}
	return format.Write(w, document)
}

// document returns the report that `shop rush` prints, with a picture of each lane (one strategy that sells
// the product).
func (run Run) document() (report.Document, error) {
	d := run.Report.Document(run.Started)
	d.Title = fmt.Sprintf("Run %d: a crowd at once, what was left, and what was recorded", run.Number)
	d.Took = 0
	if run.Fault != "" {
		d.Lead += ", with the fault " + run.Fault
	}
	d.Notes = append(d.Notes, "Repeat it: "+run.Command)
	for _, s := range run.Strikes {
		d.Notes = append(d.Notes, s.String())
	}
	for i := range d.Groups {
		d.Groups[i].Brief = false
	}
	for i := range d.Cases {
		one := &d.Cases[i]
		for _, lane := range run.Lanes {
			if lane.Strategy == one.Name {
				drawn, err := picture(lane)
				if err != nil {
					return d, err
				}
				one.Details = append(one.Details, report.Detail{Picture: drawn, After: caption(lane)})
			}
		}
		for _, r := range run.Report.Results {
			if r.Strategy == one.Name {
				one.Small = append(one.Small, fmt.Sprintf("%d left, %d records, drift %+d, oversold %d; p50 %.1f ms, p99 %.1f ms.", r.Leftover, r.Records, r.Drift, r.Oversold, r.P50MS, r.P99MS))
			}
		}
	}
	return d, nil
}

// String describes the attempt to inject a fault in a sentence.
func (s Strike) String() string {
	at := s.At.UTC().Format("15:04:05.000")
	if s.Missed != "" {
		return fmt.Sprintf("%s did not take effect on %s (%s UTC): %s.", s.Fault, s.Strategy, at, s.Missed)
	}
	return fmt.Sprintf("%s took effect on %s (%s UTC): %s.", s.Fault, s.Strategy, at, s.Proof)
}

func caption(l live.Lane) string {
	text := "A cell is a unit"
	if l.PerCell > 1 {
		text = fmt.Sprintf("A cell is %d units", l.PerCell)
	}
	text += ": empty is on the shelf, filled is sold, crossed is sold more than once. Below, the last answers in their order: a square is a sale, a crossed one a unit that was sold already, a ring sold out, a triangle busy, a diamond anything else"
	if l.MostHolders > 1 {
		text += fmt.Sprintf(". There were %d holders of the lock at once", l.MostHolders)
	}
	return text + "."
}

const (
	side    = 15 // width of a cell with its gap
	perLine = 60
)

// drawing is the template of a lane: the stock and the answers, as shapes at their positions.
var drawing = template.Must(template.New("lane").Parse(
	`<svg viewBox="0 0 {{.Width}} {{.Height}}" role="img" aria-label="{{.Units}} units sold of {{.Stocked}}, {{.Twice}} of units sold already">` +
		`{{range .Shapes}}<g transform="translate({{.X}} {{.Y}})">` +
		`{{if eq .Kind "sold"}}<rect class="one" width="12" height="12"/>` +
		`{{else if eq .Kind "part"}}<rect class="one" y="6" width="12" height="6"/>` +
		`{{else if eq .Kind "free"}}<rect class="call" fill="none" x=".5" y=".5" width="11" height="11"/>` +
		`{{else if eq .Kind "twice"}}<rect class="two" width="12" height="12"/><path d="M3 3l6 6m0 -6l-6 6" stroke="#fff" stroke-width="2"/>` +
		`{{else if eq .Kind "sale"}}<rect class="one" width="11" height="11"/>` +
		`{{else if eq .Kind "sold out"}}<circle class="call" fill="none" cx="6" cy="6" r="4.5"/>` +
		`{{else if eq .Kind "busy"}}<path class="answer" d="M0 11l6 -11l6 11z"/>` +
		`{{else}}<path class="note" d="M0 6l6 -6l6 6l-6 6z"/>{{end}}</g>{{end}}</svg>`))

// shape is one unit of the stock or one answer; X and Y are its upper left corner.
type shape struct {
	X, Y int
	Kind string
}

func picture(l live.Lane) (template.HTML, error) {
	lines := func(n int) int { return (n + perLine - 1) / perLine }
	below := lines(len(l.Cells))*side + 10
	shapes := append(shapesOf(l.Cells, 1, cellKind), shapesOf(l.Marks, below, markKind)...)
	var b strings.Builder
	err := drawing.Execute(&b, map[string]any{
		"Width": perLine * side, "Height": below + lines(len(l.Marks))*side,
		"Units": l.Units, "Stocked": l.Stocked, "Twice": l.Twice, "Shapes": shapes,
	})
	return template.HTML(b.String()), err // #nosec G203 -- the template has escaped it
}

// shapesOf returns one shape per letter, in rows that begin at y = top.
func shapesOf(letters string, top int, kind func(rune) string) (shapes []shape) {
	for i, letter := range letters {
		shapes = append(shapes, shape{i%perLine*side + 1, top + i/perLine*side, kind(letter)})
	}
	return shapes
}

func cellKind(cell rune) string {
	switch {
	case cell >= '2' && cell <= '9':
		return "twice"
	case cell == '1':
		return "sold"
	case cell == '-':
		return "part"
	}
	return "free"
}

func markKind(mark rune) string {
	return map[rune]string{'s': "sale", '2': "twice", 'n': "sold out", 'b': "busy"}[mark]
}
