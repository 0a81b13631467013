package rush

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/plural"
)

// A Report contains the results of one command. It is the JSON document of shop rush.
type Report struct {
	Engine    string   `json:"engine"`           // "target" for a running service
	Target    string   `json:"target,omitempty"` // address of the running service
	Server    string   `json:"server,omitempty"` // product and version of the database, and its isolation level if the database can run with several
	Stock     int64    `json:"stock"`
	Buyers    int      `json:"buyers"`
	Processes int      `json:"processes"`
	Units     []int64  `json:"units,omitempty"`          // units of the orders, in turn; nil: one unit each
	Second    string   `json:"second_product,omitempty"` // another product, which has half of Stock
	Restocks  int      `json:"restocks"`                 // number of restocks after a rush that holds
	Results   []Result `json:"results"`
	LeftOut   []string `json:"left_out,omitempty"` // unavailable strategies, with the reason
	Strikes   []string `json:"strikes,omitempty"`  // injected faults and their effects, as sentences
	Growth    []string `json:"growth,omitempty"`   // use of resources by the shop's processes in a long rush, as sentences
	For       string   `json:"for,omitempty"`      // length of a long rush, for example 1h; "": one rush for each strategy

	Unfinished string `json:"unfinished,omitempty"` // why results are missing; "" if the rush is complete
}

// Table writes the report as text, in color or plain.
func (r Report) Table(w io.Writer, colour bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n\n", r.lead(), r.results().Terminal(report.Look{Colour: colour, Loud: true}))
	for _, x := range r.Results {
		if x.Waves != nil || x.Verdict != verdict.Holds || x.FirstError != "" || x.Returned > 0 || x.breaksElsewhere() {
			fmt.Fprintln(&b, x.Strategy+": "+x.seen())
		}
	}
	for _, s := range slices.Concat(r.Strikes, r.Growth) {
		fmt.Fprintln(&b, s)
	}
	for _, left := range r.LeftOut {
		fmt.Fprintln(&b, "left out: "+left)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (Report) columns() []string {
	return []string{"leftover", "records", "oversold", "drift", "sold", "sold out", "busy", "errors", "p50", "p99", "purchases/s"}
}

// fields returns the numbers of a row, in the order of the table's columns.
func (x Result) fields() (texts []string) {
	for _, n := range []int64{x.Leftover, x.Records, x.Oversold, x.Drift, x.Sold, x.SoldOut, x.Busy, x.LockLost + x.Unknown + x.Failed} {
		texts = append(texts, fmt.Sprint(n))
	}
	return append(texts, latency(x.P50MS), latency(x.P99MS), fmt.Sprintf("%.0f", x.PerSecond))
}

// seen describes a result: the reason of the verdict, how often buyers asked again, and the first error.
func (x Result) seen() string {
	text := x.Reason
	switch {
	case x.Waves == nil:
	case x.Verdict == verdict.Holds:
		text = x.Waves.String()
	default:
		text = x.Waves.String() + "; " + text
	}
	if x.Returned > 0 {
		text += fmt.Sprintf("; buyers came back %d times after Retry-After", x.Returned)
	}
	if x.breaksElsewhere() {
		text += "; * breaks under " + x.breaks()
	}
	if x.FirstError != "" {
		text += "; first error: " + x.FirstError
	}
	return text
}

// breaks names the first three conditions under which the strategy breaks.
func (x Result) breaks() string {
	const shown = 3
	text := strings.Join(x.BreaksUnder[:min(shown, len(x.BreaksUnder))], ", ")
	if more := len(x.BreaksUnder) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (r Report) lead() string {
	text := fmt.Sprintf("%d on sale, ", r.Stock)
	if r.Second != "" {
		text += fmt.Sprintf("half of them %s, ", r.Second)
	}
	text += plural.Count(r.Buyers, "buyer") + " at once, "
	if r.For != "" {
		text += fmt.Sprintf("repeated for %s in waves of a quarter to all of them, ", r.For)
	}
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
