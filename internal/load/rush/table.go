package rush

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Report is the results of one command; as JSON it is what `shop rush
// --json` prints.
type Report struct {
	Engine    string   `json:"engine"`           // "target" for a service that runs already
	Target    string   `json:"target,omitempty"` // where it is
	Server    string   `json:"server,omitempty"` // the database's product and version, and its isolation level where that is not one for all
	Stock     int64    `json:"stock"`
	Buyers    int      `json:"buyers"`
	Processes int      `json:"processes"`
	Units     []int64  `json:"units,omitempty"`          // an order, in turn; nil: one
	Second    string   `json:"second_product,omitempty"` // which has half of Stock
	Restocks  int      `json:"restocks"`                 // after a rush that holds
	Results   []Result `json:"results"`
	LeftOut   []string `json:"left_out,omitempty"` // strategies that cannot run here, and why
	Strikes   []string `json:"strikes,omitempty"`  // what broke in the crowds, or did not, in sentences

	Unfinished string `json:"unfinished,omitempty"` // why there are no more results, "" when all were run
}

// trailing is what the table's writer pads the last column with.
var trailing = regexp.MustCompile(`(?m) +$`)

// Draw is a table as the terminal shows it: one line, below the header.
func Draw(t table.Writer) string {
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.SeparateColumns = false
	style.Options.DrawBorder = false
	t.SetStyle(style)
	return trailing.ReplaceAllString(t.Render(), "")
}

// Table writes the report for a person, in colour or plain.
func (r Report) Table(w io.Writer, colour bool) error {
	t := table.NewWriter()
	header := table.Row{"strategy"}
	var columns []table.ColumnConfig
	for i, name := range r.columns() {
		header = append(header, name)
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	t.AppendHeader(append(header, "verdict"))
	for _, x := range r.Results {
		row := append(table.Row{x.Strategy}, x.fields()...)
		t.AppendRow(append(row, paint(x, colour)))
	}
	if _, err := fmt.Fprintf(w, "%s\n\n%s\n\n", r.lead(), Draw(t)); err != nil {
		return err
	}
	for _, x := range r.Results {
		if x.Verdict == verdict.Holds && x.FirstError == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, x.Strategy+": "+x.seen()); err != nil {
			return err
		}
	}
	for _, s := range r.Strikes {
		if _, err := fmt.Fprintln(w, s); err != nil {
			return err
		}
	}
	for _, left := range r.LeftOut {
		if _, err := fmt.Fprintln(w, "left out: "+left); err != nil {
			return err
		}
	}
	return nil
}

// columns are the figures of a row, between the strategy and its verdict.
func (Report) columns() []string {
	return []string{"leftover", "records", "oversold", "drift", "sold", "sold out", "busy", "errors", "p50", "p99", "purchases/s"}
}

// fields are the row's figures, in the order of columns.
func (x Result) fields() []any {
	return []any{
		x.Leftover, x.Records, x.Oversold, x.Drift, x.Sold, x.SoldOut, x.Busy, x.LockLost + x.Unknown + x.Failed,
		latency(x.P50MS), latency(x.P99MS), fmt.Sprintf("%.0f", x.PerSecond),
	}
}

// seen is the reason of the verdict, and the first error.
func (x Result) seen() string {
	if x.FirstError == "" {
		return x.Reason
	}
	return x.Reason + "; first error: " + x.FirstError
}

// lead says what was on sale, for whom and where.
func (r Report) lead() string {
	text := fmt.Sprintf("%d on sale, ", r.Stock)
	if r.Second != "" {
		text += fmt.Sprintf("half of them %s, ", r.Second)
	}
	text += fmt.Sprintf("%d buyers at once, ", r.Buyers)
	if len(r.Units) > 0 {
		text += fmt.Sprintf("orders of %s units, ", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(r.Units)), ", "), "[]"))
	}
	if r.Restocks != 1 {
		text += fmt.Sprintf("%d restocks after what holds, ", r.Restocks)
	}
	return text + r.where()
}

func (r Report) where() string {
	if r.Target != "" {
		return r.Target
	}
	where := r.Engine + " engine"
	if r.Server != "" {
		where += " (" + r.Server + ")"
	}
	if r.Processes == 1 {
		return where + ", 1 process"
	}
	return fmt.Sprintf("%s, %d processes", where, r.Processes)
}

func latency(ms float64) string {
	if ms < 10 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// paint colours a verdict: green holds, yellow proves nothing, red is a break.
func paint(x Result, colour bool) string {
	word := string(x.Verdict)
	if !colour {
		return word
	}
	switch x.Verdict {
	case verdict.Holds:
		return text.FgGreen.Sprint(word)
	case verdict.Inconclusive:
		return text.FgYellow.Sprint(word)
	}
	return text.FgRed.Sprint(word)
}
