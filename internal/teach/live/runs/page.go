package runs

import (
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/teach/live"
)

// Page writes the run as one HTML file that needs nothing else.
func (run Run) Page(w io.Writer) error {
	format, err := report.ByEnding("run.html")
	if err != nil {
		return err
	}
	return format.Write(w, run.document())
}

// document is the command's, with a picture of each lane.
func (run Run) document() report.Document {
	d := run.Report.Document(run.Started)
	d.Title = fmt.Sprintf("Run %d: a crowd at once, what was left, and what was recorded", run.Number)
	d.Took = 0
	if run.Fault != "" {
		d.Lead += ", struck by " + run.Fault
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
				one.Details = append(one.Details, report.Detail{Picture: picture(lane), After: caption(lane)})
			}
		}
		for _, r := range run.Report.Results {
			if r.Strategy == one.Name {
				one.Small = append(one.Small, fmt.Sprintf("%d left, %d records, drift %+d, oversold %d; p50 %.1f ms, p99 %.1f ms.", r.Leftover, r.Records, r.Drift, r.Oversold, r.P50MS, r.P99MS))
			}
		}
	}
	return d
}

// String is a strike as a sentence.
func (s Strike) String() string {
	at := s.At.UTC().Format("15:04:05.000")
	if s.Missed != "" {
		return fmt.Sprintf("%s did not strike %s (%s UTC): %s.", s.Fault, s.Strategy, at, s.Missed)
	}
	return fmt.Sprintf("%s struck %s (%s UTC): %s.", s.Fault, s.Strategy, at, s.Proof)
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
	side    = 15 // of a cell with its gap
	perLine = 60
)

// picture draws the shelf and the answers. It has the lane's digits and letters alone, and no
// name that somebody typed.
func picture(l live.Lane) template.HTML {
	var b strings.Builder
	lines := func(n int) int { return (n + perLine - 1) / perLine }
	below := lines(len(l.Cells))*side + 10
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%d units sold of %d, %d of units sold already">`,
		perLine*side, below+lines(len(l.Marks))*side, l.Units, l.Stocked, l.Twice)
	for i, cell := range l.Cells {
		x, y := i%perLine*side+1, i/perLine*side+1
		switch {
		case cell >= '2' && cell <= '9':
			crossed(&b, x, y)
		case cell == '1':
			fmt.Fprintf(&b, `<rect class="one" x="%d" y="%d" width="12" height="12"/>`, x, y)
		case cell == '-':
			fmt.Fprintf(&b, `<rect class="one" x="%d" y="%d" width="12" height="6"/>`, x, y+6)
		default:
			fmt.Fprintf(&b, `<rect class="call" fill="none" x="%d.5" y="%d.5" width="11" height="11"/>`, x, y)
		}
	}
	for i, mark := range l.Marks {
		x, y := i%perLine*side+1, below+i/perLine*side
		switch mark {
		case 's':
			fmt.Fprintf(&b, `<rect class="one" x="%d" y="%d" width="11" height="11"/>`, x, y)
		case '2':
			crossed(&b, x, y)
		case 'n':
			fmt.Fprintf(&b, `<circle class="call" fill="none" cx="%d" cy="%d" r="4.5"/>`, x+6, y+6)
		case 'b':
			fmt.Fprintf(&b, `<path class="answer" d="M%d %dl6 -11l6 11z"/>`, x, y+11)
		default:
			fmt.Fprintf(&b, `<path class="note" d="M%d %dl6 -6l6 6l-6 6z"/>`, x, y+6)
		}
	}
	return template.HTML(b.String() + "</svg>")
}

func crossed(b *strings.Builder, x, y int) {
	fmt.Fprintf(b, `<rect class="two" x="%d" y="%d" width="12" height="12"/><path d="M%d %dl6 6m0 -6l-6 6" stroke="#fff" stroke-width="2"/>`, x, y, x+3, y+3)
}
