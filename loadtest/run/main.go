// Command run sends the burst of `shop rush` to a running shop with vegeta or k6, and prints one
// table. Start it inside this repository:
//
//	go run ./loadtest/run --strategy none,for-update
//
//	restock -> vegeta or k6 -> answers, audit, records -> verdict
//
// Package internal/judge/trial chooses the strategies, restocks and judges. So a verdict and an exit code
// mean the same as in `shop rush --target URL --expect`.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/web"
)

// Exit codes, as of the command shop.
const (
	exitBroken       = 1
	exitHarness      = 2
	exitInconclusive = 3
	exitInterrupted  = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the program and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	results, err := loadTest(ctx, args, stdout, stderr)
	broken, void := rush.Contradictions(results)
	code, text := 0, ""
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case ctx.Err() != nil:
		code, text = exitInterrupted, "interrupted"
	case err != nil:
		code, text = exitHarness, err.Error()
	case len(broken) > 0:
		code, text = exitBroken, strings.Join(broken, "; ")
	case len(void) > 0:
		code, text = exitInconclusive, "inconclusive: "+strings.Join(void, ", ")
	default:
		return 0
	}
	fmt.Fprintln(stderr, "loadtest: "+text)
	return code
}

// loadTest reads the flags, sends one burst for each strategy, and prints the table.
func loadTest(ctx context.Context, args []string, stdout, stderr io.Writer) (results []rush.Result, err error) {
	crowd := trial.Crowd{Processes: 1, Units: []int64{1}, Restocks: 1, Expect: true, Shops: web.Config{Settings: lockstrategy.DefaultSettings()}}
	flags := flag.NewFlagSet("loadtest/run", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	toolName := flags.String("tool", "vegeta", "load `generator`: vegeta or k6")
	flags.StringVar(&crowd.Target, "url", "http://127.0.0.1:8080", "`URL` of the shop [admin token: SHOP_ADMIN_TOKEN]")
	strategies := flags.String("strategy", "all", "strategy `names`, comma-separated, or all that the shop offers")
	flags.StringVar(&crowd.Product, "product", purchase.DefaultProduct, "`name` of the product; each burst deletes its records")
	flags.Int64Var(&crowd.Stock, "stock", 100, "units on sale before each strategy")
	flags.IntVar(&crowd.Buyers, "buyers", 200, "number of buyers, all at once")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(stdout)
			flags.Usage()
			return nil, err
		}
		return nil, fmt.Errorf("%w; list the flags with: -h", cmp.Or(err, fmt.Errorf("unknown argument %q", flags.Arg(0))))
	}
	crowd.Strategies = strings.Split(*strategies, ",")
	if crowd.Target, err = trial.ServiceURL("url", crowd.Target); err != nil {
		return nil, err
	}
	if err := crowd.Check(); err != nil {
		return nil, err
	}
	front, err := trial.Open(ctx, &crowd, engine.Config{}, os.Getenv("SHOP_ADMIN_TOKEN"), nil)
	if err != nil {
		return nil, fmt.Errorf("%w; start a shop with: shop serve", err)
	}
	names, err := crowd.Names(front)
	if err != nil {
		return nil, err
	}
	generator, err := build(ctx, *toolName, stderr)
	if err != nil {
		return nil, err
	}
	crowd.Send = generator.send
	for _, name := range names {
		var r rush.Result
		if r, err = front.Send(ctx, &crowd, name, trial.Watching{}); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			break
		}
		results = append(results, r)
	}
	if len(results) > 0 {
		fmt.Fprintf(stdout, "%s, %d buyers at once for %d units, %s\n\n%s\n\n", *toolName, crowd.Buyers, crowd.Stock, crowd.Target, table(results))
	}
	for _, r := range results {
		if r.Verdict != verdict.Holds {
			fmt.Fprintf(stdout, "%s: %s\n", r.Strategy, r.Reason)
		}
	}
	for _, left := range crowd.Report(front).LeftOut {
		fmt.Fprintln(stdout, "left out: "+left)
	}
	return results, err
}

// table returns the results as text. The column requests/s counts each request of the tool, and not only the
// sales.
func table(results []rush.Result) string {
	t := report.Table{Columns: report.Columns("strategy", "leftover", "records", "oversold", "drift", "p50 ms", "p99 ms", "requests/s", "verdict")}
	for i := 1; i < len(t.Columns)-1; i++ {
		t.Columns[i].Numbers = true
	}
	for _, r := range results {
		t.Rows = append(t.Rows, report.Texts(
			r.Strategy, fmt.Sprint(r.Leftover), fmt.Sprint(r.Records), fmt.Sprint(r.Oversold), fmt.Sprint(r.Drift),
			fmt.Sprintf("%.0f", r.P50MS), fmt.Sprintf("%.0f", r.P99MS), fmt.Sprintf("%.0f", float64(r.Crowd)/r.DurationMS*1000), string(r.Verdict),
		))
	}
	return t.Terminal(report.Look{})
}
