package forecast

import (
	"fmt"
	"io"
	"strings"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/load/sizing"
)

// A Report is what --json prints.
type Report struct {
	Shop        sizing.Shop    `json:"shop"`               // what was asked for, and what was assumed of it
	From        string         `json:"from"`               // whose points it rests on
	Calibration sizing.Machine `json:"calibration"`        // of that machine
	Assumptions []string       `json:"assumptions"`        // in words
	Results     []Result       `json:"results"`            // the fastest first
	LeftOut     []string       `json:"left_out,omitempty"` // strategies, and why
}

// A Result is the prediction of one strategy.
type Result struct {
	Strategy string `json:"strategy"`
	sizing.Estimate
}

// assume says what the figures rest on.
func (r *Report) assume() {
	add := func(format string, args ...any) { r.Assumptions = append(r.Assumptions, fmt.Sprintf(format, args...)) }
	s := r.Shop
	add("Turn and processor time of a sale: %s.", r.From)
	where := fmt.Sprintf("%g processors a database node, %g a shop process, one for Redis; buyers are elsewhere", s.DatabaseCores, s.ShopCores)
	if s.OneMachine {
		where = fmt.Sprintf("%g processors for everything, buyers included", s.DatabaseCores)
	}
	add("%d buyers, %d connections a process; %s.", s.Buyers, s.Conns, where)
	if s.OneMachine && s.Processes > 1 && r.Calibration.Crowding == 0 {
		add("What a process more costs the others was not measured there, and is left out; --measure does.")
	}
	add("COMMIT %s ms beside its round trip; network %g ms to the database, %g ms to the lock's servers.", short(s.CommitMS), s.RTTMS, s.LockRTTMS)
	switch {
	case s.Nodes > 1:
		add("%d nodes, %d of them written to: each applies every write, a row is locked until all have certified, and writers at one row conflict.", s.Nodes, s.Writers)
	case s.KeepsRow:
		add("A row is locked until COMMIT is over.")
	default:
		add("A row is free when COMMIT has come, before it is on the disk, as InnoDB does without a binary log; else give --row-until-disk.")
	}
	if s.Records > 0 {
		add("Records change nothing while the indexes of purchase_history fit into the database's memory; docs/scale.md has what was measured beyond.")
	}
	add("Speed alone: what each strategy survives is in docs/matrix.md.")
}

// cells are the columns of a row, after its name.
func (e Result) cells() []string {
	return []string{
		fmt.Sprintf("%.0f", e.PerSecond), e.First, fmt.Sprintf("%.0f %%", 100*e.Use), fmt.Sprintf("%.0f", e.ShelfMax), fmt.Sprintf("%.0f", e.CoresMax),
	}
}

// columns are named for what they would be at most if nothing else gave way.
func (r *Report) columns() []report.Column {
	return []report.Column{
		{Name: "strategy"},
		{Name: "sales/s", Numbers: true},
		{Name: "gives way first"},
		{Name: "its use", Numbers: true},
		{Name: "one product", Numbers: true},
		{Name: "processors", Numbers: true},
	}
}

// columnsMean explains the last two.
const columnsMean = "One product, processors: what a single product, and the processors, could do at most if nothing else gave way."

// Print writes the table for a person.
func (r *Report) Print(w io.Writer, _ bool) error {
	_, err := fmt.Fprintf(w, "%s\n%s\n\n%s\n", r.table().Terminal(report.Look{Boxed: true}), columnsMean, strings.Join(r.notes(), "\n"))
	return err
}

func (r *Report) notes() []string {
	if len(r.LeftOut) == 0 {
		return r.Assumptions
	}
	return append(r.Assumptions, "Left out: "+strings.Join(r.LeftOut, "; ")+".")
}

// table has a row a strategy.
func (r *Report) table() report.Table {
	t := report.Table{Columns: r.columns(), Note: columnsMean}
	for _, e := range r.Results {
		t.Rows = append(t.Rows, report.Row(e.Strategy, e.cells()...))
	}
	return t
}

// Document is the report as any format shows it.
func (r *Report) Document() report.Document {
	d := report.Document{
		Command: "shop size", Title: "What a shop can sell, and what gives way first",
		Lead:  fmt.Sprintf("%d products, %d shop processes, %d database nodes", r.Shop.Products, r.Shop.Processes, r.Shop.Nodes),
		Notes: r.notes(), Value: r, Tables: []report.Table{r.table()},
		Groups: []report.Group{{Heading: "Predictions", Brief: true, Columns: [3]string{"command", "strategy", "prediction"}}},
	}
	for _, e := range r.Results {
		d.Cases = append(d.Cases, report.Case{Suite: "size", Name: e.Strategy, Title: e.Strategy, Seen: e.Estimate.String()})
	}
	return d
}

// short is a number of milliseconds with what can be told of it.
func short(ms float64) string { return fmt.Sprintf("%.2g", ms) }
