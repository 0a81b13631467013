package forecast

import (
	"fmt"
	"io"
	"strings"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// A Report is the JSON document of shop size.
type Report struct {
	Shop        sizing.Shop    `json:"shop"`               // the shop to predict, with defaults filled in
	From        string         `json:"from"`               // source of the measured points
	Calibration sizing.Machine `json:"calibration"`        // measured constants of that machine
	Assumptions []string       `json:"assumptions"`        // as sentences
	Results     []Result       `json:"results"`            // fastest first
	LeftOut     []string       `json:"left_out,omitempty"` // strategies without a prediction, with the reason
}

// A Result is the prediction of one strategy.
type Result struct {
	Strategy string `json:"strategy"`
	sizing.Estimate
}

// assume lists the assumptions of the prediction.
func (r *Report) assume() {
	add := func(format string, args ...any) { r.Assumptions = append(r.Assumptions, fmt.Sprintf(format, args...)) }
	s := r.Shop
	add("Times of a sale: %s.", r.From)
	where := fmt.Sprintf("%g processors per database node, %g per shop process, one for Redis; the buyers run elsewhere", s.DatabaseCores, s.ShopCores)
	if s.OneMachine {
		where = fmt.Sprintf("%g processors for everything, buyers included", s.DatabaseCores)
	}
	add("%d buyers, %d connections per process; %s.", s.Buyers, s.Conns, where)
	if s.OneMachine && s.Processes > 1 && r.Calibration.Crowding == 0 {
		add("The cost that each further process adds for the others was not measured there and is ignored; --measure measures it.")
	}
	add("COMMIT takes %s ms plus its round trip; network %g ms to the database, %g ms to the lock's servers.", short(s.CommitMS), s.RTTMS, s.LockRTTMS)
	switch {
	case s.Nodes > 1:
		add("%d nodes, %d writers: each node applies every write, a row stays locked until all nodes have certified, and writers at one row conflict.", s.Nodes, s.Writers)
	case s.KeepsRow:
		add("A row stays locked until COMMIT has finished.")
	default:
		add("A row is unlocked when COMMIT arrives, before the disk has it, as in InnoDB without a binary log; otherwise use --row-until-disk.")
	}
	if s.Records > 0 {
		add("Records have no effect while the indexes of purchase_history fit into the memory of the database.")
	}
	add("This predicts speed only. A strategy with * is not safe; see docs/guides/choose-a-strategy.md.")
}

// label marks a strategy that some condition breaks.
func (e Result) label() string {
	if entry, ok := lockstrategy.ByName(e.Strategy); ok && len(entry.Breaks(dialect.MySQL)) > 0 {
		return e.Strategy + " *"
	}
	return e.Strategy
}

// cells returns the cells of a row after the strategy.
func (e Result) cells() []string {
	return []string{
		fmt.Sprintf("%.0f", e.PerSecond), e.First, fmt.Sprintf("%.0f %%", 100*e.Use), fmt.Sprintf("%.0f", e.ShelfMax), fmt.Sprintf("%.0f", e.CoresMax),
	}
}

func (r *Report) columns() []report.Column {
	return []report.Column{
		{Name: "strategy"},
		{Name: "sales/s", Numbers: true},
		{Name: "bottleneck"},
		{Name: "used", Numbers: true},
		{Name: "one product", Numbers: true},
		{Name: "processors", Numbers: true},
	}
}

// columnsMean explains the last two columns.
const columnsMean = `"one product" and "processors": the maximum if only that product, or only the processors, limited the sales.`

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

// table has one row for each strategy.
func (r *Report) table() report.Table {
	t := report.Table{Columns: r.columns(), Note: columnsMean}
	for _, e := range r.Results {
		t.Rows = append(t.Rows, report.Row(e.label(), e.cells()...))
	}
	return t
}

// Document returns the report for every format.
func (r *Report) Document() report.Document {
	d := report.Document{
		Command: "shop size", Title: "Predicted sales and bottlenecks",
		Lead:  fmt.Sprintf("%d products, %d shop processes, %d database nodes", r.Shop.Products, r.Shop.Processes, r.Shop.Nodes),
		Notes: r.notes(), Value: r, Tables: []report.Table{r.table()},
		Groups: []report.Group{{Heading: "Predictions", Brief: true, Columns: [3]string{"command", "strategy", "prediction"}}},
	}
	for _, e := range r.Results {
		d.Cases = append(d.Cases, report.Case{Suite: "size", Name: e.Strategy, Title: e.Strategy, Seen: e.Estimate.String()})
	}
	return d
}

// short formats milliseconds with two significant digits.
func short(ms float64) string { return fmt.Sprintf("%.2g", ms) }
