// Command run sends the burst of `shop rush` to a running shop with vegeta or k6, and prints one
// table. Start it inside this repository:
//
//	go run ./loadtest/run --strategy none,for-update
//
//	restock -> vegeta or k6 -> answers, audit, records -> verdict
//
// Package rush restocks and judges, so a verdict and an exit code mean the same as in
// `shop rush --target URL --expect`.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/nearest"
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
	broken, void := rush.Judged(results)
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
	flags := flag.NewFlagSet("loadtest/run", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	toolName := flags.String("tool", "vegeta", "load `generator`: vegeta or k6")
	base := flags.String("url", "http://127.0.0.1:8080", "`URL` of the shop [admin token: SHOP_ADMIN_TOKEN]")
	strategies := flags.String("strategy", "all", "strategy `names`, comma-separated, or all that the shop offers")
	product := flags.String("product", "apple", "`name` of the product; each burst deletes its records")
	stock := flags.Int64("stock", 100, "units on sale before each strategy")
	buyers := flags.Int("buyers", 200, "number of buyers, all at once")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(stdout)
			flags.Usage()
			return nil, err
		}
		return nil, fmt.Errorf("%w; list the flags with: -h", cmp.Or(err, fmt.Errorf("unknown argument %q", flags.Arg(0))))
	}
	*base = strings.TrimSuffix(*base, "/")
	if u, err := url.Parse(*base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--url must be a URL such as http://host:port (got %q)", *base)
	}
	if *stock < 1 || *buyers < 1 || *buyers > maxBuyers {
		return nil, fmt.Errorf("--stock must be at least 1, and --buyers between 1 and %d (got %d and %d)", maxBuyers, *stock, *buyers)
	}
	target := rush.Target{BaseURL: *base, Token: os.Getenv("SHOP_ADMIN_TOKEN")}
	served, err := target.Strategies(ctx)
	if err != nil {
		return nil, fmt.Errorf("no shop at %s: %w; start it with: shop serve", *base, err)
	}
	chosen, missing, err := choose(served, *strategies, *base)
	if err != nil {
		return nil, err
	}
	generator, err := build(ctx, *toolName, stderr)
	if err != nil {
		return nil, err
	}
	for _, s := range chosen {
		config := rush.Config{
			BaseURLs: []string{*base}, Shelf: target, Auditor: target, Strategy: s.Name, Product: *product, Stock: *stock, Buyers: *buyers,
			Timeout: time.Minute, Send: generator.send,
		}
		var r rush.Result
		promised := promiseOf(s)
		for n := 0; n == 0 || err == nil && n < verdict.Crowds && promised.Misses(r.Verdict); n++ {
			r, err = rush.Run(ctx, config)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", s.Name, err)
			break
		}
		r.Promise = promised
		results = append(results, r)
	}
	if len(results) > 0 {
		fmt.Fprintf(stdout, "%s, %d buyers at once for %d units, %s\n\n%s\n\n", *toolName, *buyers, *stock, *base, table(results))
	}
	for _, r := range results {
		if r.Verdict != verdict.Holds {
			fmt.Fprintf(stdout, "%s: %s\n", r.Strategy, r.Reason)
		}
	}
	for _, s := range missing {
		fmt.Fprintf(stdout, "left out: %s: %s\n", s.Name, s.Reason)
	}
	return results, err
}

// choose returns the named strategies. For all, it returns those that the shop can run, and the
// others as missing.
func choose(served []rush.TargetStrategy, names, base string) (chosen, missing []rush.TargetStrategy, _ error) {
	known := map[string]rush.TargetStrategy{}
	var all []string
	for _, s := range served {
		known[s.Name] = s
		all = append(all, s.Name)
		if s.CanRun() {
			chosen = append(chosen, s)
		} else {
			missing = append(missing, s)
		}
	}
	switch {
	case names == "all" && chosen == nil:
		return nil, nil, fmt.Errorf("%s/strategies lists no strategy that can run; name them with --strategy", base)
	case names == "all":
		return chosen, missing, nil
	}
	chosen = nil
	for name := range strings.SplitSeq(names, ",") {
		s, ok := known[name]
		switch {
		case served == nil:
			s.Name = name // another kind of service, which needs no list
		case !ok:
			return nil, nil, nearest.Unknown("strategy", name, all, "curl "+base+"/strategies")
		case !s.CanRun():
			return nil, nil, fmt.Errorf("the shop cannot run strategy %s: %s", name, s.Reason)
		}
		chosen = append(chosen, s)
	}
	return chosen, nil, nil
}

// promiseOf returns the shop's promise for a burst. Without any promise, a strategy is expected to hold.
func promiseOf(s rush.TargetStrategy) verdict.Verdict {
	if len(s.Promise) == 0 {
		return verdict.Holds
	}
	return s.Promise["rush"]
}

// table returns the results as text. A tool's rate counts each request, and not only the sales.
func table(results []rush.Result) string {
	t := report.Table{Columns: report.Columns("strategy", "leftover", "records", "oversold", "drift", "p50 ms", "p99 ms", "requests/s", "verdict")}
	for i := 1; i < len(t.Columns)-1; i++ {
		t.Columns[i].Numbers = true
	}
	for _, r := range results {
		var row []report.Cell
		for _, text := range []string{
			r.Strategy, fmt.Sprint(r.Leftover), fmt.Sprint(r.Records), fmt.Sprint(r.Oversold), fmt.Sprint(r.Drift),
			fmt.Sprintf("%.0f", r.P50MS), fmt.Sprintf("%.0f", r.P99MS), fmt.Sprintf("%.0f", float64(r.Crowd)/r.DurationMS*1000), string(r.Verdict),
		} {
			row = append(row, report.Cell{Text: text})
		}
		t.Rows = append(t.Rows, row)
	}
	return t.Terminal(report.Look{})
}
