// Command bench measures lock libraries over a Redis that it starts. Contenders in child processes take the
// locks. It prints the table of docs/guides/lock-in-your-program.md.
//
//	go run . -markdown          # about 6 minutes
//	go run . -quick             # about 20 seconds
//	go run . -only redislock    # locks with a name that begins with redislock
//
// Exit code: 0, or 1 with the error on standard error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/oversell/oversell/locktest"
)

func main() {
	locktest.Child(open)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(2)
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A cell is the load of one column of the table.
type cell struct {
	processes int
	section   time.Duration
}

const contenders = 64

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	var (
		markdown = flags.Bool("markdown", false, "print a markdown table")
		quick    = flags.Bool("quick", false, "one run of 500 ms a cell, not five of 2 s")
		only     = flags.String("only", "", "only locks whose name begins so")
		runs     = flags.Int("runs", 5, "runs a cell; the median is printed")
		topology = flags.String("topology", "", "how Redis is built: single, sentinel or cluster; rueidislock runs on one server only")
		period   = flags.Duration("for", 2*time.Second, "length of a run")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		*runs, *period = 1, 500*time.Millisecond
	}
	if *runs < 1 || *period <= 0 {
		return fmt.Errorf("%d runs of %s: want some", *runs, *period)
	}
	srv, err := startServer(*topology)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.close()) }()

	t := table{period: *period}
	for _, k := range kinds() {
		if strings.HasPrefix(k.name, *only) && (srv.redis != nil || k.anywhere) {
			t.names = append(t.names, k.name)
		}
	}
	for _, processes := range []int{1, 8} {
		for _, section := range []time.Duration{0, time.Millisecond} {
			t.cells = append(t.cells, cell{processes, section})
		}
	}
	if t.figures, err = measure(ctx, srv, t, *runs, *period, progress); err != nil {
		return err
	}
	if *markdown {
		return t.markdown(out)
	}
	return t.text(out)
}

// measure puts every load on every lock once per run. So a minute in which the machine is busy affects all
// locks alike.
func measure(ctx context.Context, srv *server, t table, runs int, period time.Duration, progress io.Writer) (map[string]map[cell]locktest.Figures, error) {
	all := map[string]map[cell][]locktest.Figures{}
	for i := range runs {
		for _, name := range t.names {
			if all[name] == nil {
				all[name] = map[cell][]locktest.Figures{}
			}
			for _, c := range t.cells {
				k, err := kindOf(name)
				if err != nil {
					return nil, err
				}
				f, err := locktest.Measure(ctx, srv.subject(k, 0), locktest.Load{
					Contenders: contenders, Processes: c.processes, Section: c.section, For: period,
				})
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				fmt.Fprintf(progress, "run %d/%d, %s, %s: %s\n", i+1, runs, name, c, t.words(f))
				if f.Overlaps > 0 {
					return nil, fmt.Errorf("%s, %s: %d times two holders at once", name, c, f.Overlaps)
				}
				all[name][c] = append(all[name][c], f)
			}
		}
	}
	medians := map[string]map[cell]locktest.Figures{}
	for name, cells := range all {
		medians[name] = map[cell]locktest.Figures{}
		for c, figures := range cells {
			medians[name][c] = locktest.Median(figures)
		}
	}
	return medians, nil
}
