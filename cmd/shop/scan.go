package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/draft"
	"github.com/oversell/oversell/internal/explore/program"
	"github.com/oversell/oversell/internal/explore/scan"
	"github.com/oversell/oversell/internal/explore/scan/source"
	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/trial"
)

// scanBudget is the default of --budget for `shop scan`.
const scanBudget = 5 * time.Minute

type scanOptions struct {
	file    string
	sources map[string]*string // files by the name of a source.Format
	budget  time.Duration
	save    string
	allowed string
	output  output
}

func scanCommand() *cobra.Command {
	o := scanOptions{sources: map[string]*string{}}
	c := &cobra.Command{
		Use:   "scan",
		Short: "Find which requests of your shop race with each other",
		Long: `Run each pair of your shop's requests through every interleaving, also a request against itself, and
compare with the same requests one after the other. Pairs that share no data are left out. The
requests come from the file of --app (requests:), an OpenAPI document, a HAR file, or curl commands.

Exit codes: 0 no pair races, 1 a pair races, 2 error, 3 a pair or a request was not explored to the end,
130 interrupted.`,
		Example: `  shop scan --curl requests.txt
  shop scan --app oversell.yaml --budget 10m --save races`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringVar(&o.file, "app", draft.FileName, "`file` that describes your program")
	for _, f := range source.Formats() {
		o.sources[f.Name] = flags.String(f.Name, "", "`file` with more requests, as "+f.What)
	}
	flags.DurationVar(&o.budget, "budget", scanBudget, "time for all pairs")
	flags.StringVar(&o.save, "save", "", "`folder` for a file and a replay of each pair that races")
	flags.StringVar(&o.allowed, wipeFlag, "", "`host:port` of a remote server that the search can reset")
	o.output.register(c)
	setHelp(c, "docs/guides/test-your-shop.md", "app", "openapi", "har", "curl", "save")
	return c
}

func (o *scanOptions) run(c *cobra.Command) error {
	a, unused, err := o.load()
	if err != nil {
		return err
	}
	command := o.command(c.Flags())
	progress := newProgress(c.ErrOrStderr())
	config := scan.Config{
		Search: explore.Config{
			OfProgram: program.Of(a), Buyers: 2, Bound: -1, Shared: a.Shared != "" || a.Attach != nil,
		},
		Budget: o.budget, Save: o.save, Progress: progress.show,
		Found: func(p scan.Pair, after time.Duration) {
			progress.clear()
			fmt.Fprintf(c.ErrOrStderr(), "found after %.0f s: %s\n", after.Seconds(), p.Name())
		},
		Command: func(file, replay string) string {
			again := appFlags{file: file, tries: target.DefaultTries, allowed: o.allowed}
			return again.command() + " --replay " + trial.ShellWord(replay)
		},
	}
	config.Search.Again = command
	r, err := scan.Run(c.Context(), a, config)
	progress.clear()
	if err != nil && len(r.Pairs) == 0 {
		return err
	}
	r.Unused = unused
	if err != nil || c.Context().Err() != nil {
		r.Unfinished = unfinished(c.Context(), err)
	}
	r.Finish()
	d, failed := r.Document(command)
	if failed == nil {
		failed = o.output.write(c, d, r.Text)
	}
	switch {
	case c.Context().Err() != nil || failed != nil:
		return errors.Join(c.Context().Err(), failed)
	case r.Broken():
		return &exitError{exitBroken, ""}
	case err != nil:
		return err
	case !r.OK:
		return &exitError{exitInconclusive, r.Unproven()}
	}
	if o.output.printsText() {
		_, err = fmt.Fprintln(c.OutOrStdout(), "what exit code 0 proves: "+report.Proof("scan"))
	}
	return err
}

func (o *scanOptions) command(flags *pflag.FlagSet) string {
	names := slices.AppendSeq([]string{"budget", wipeFlag}, maps.Keys(o.sources))
	return "shop scan --app " + trial.ShellWord(o.file) + given(flags, names)
}

// load reads the files that the flags name, before anything starts. The result `unused` has a line for each
// request in the files that cannot be sent.
func (o *scanOptions) load() (a *app.App, unused []string, _ error) {
	if o.budget <= 0 {
		return nil, nil, fmt.Errorf("--budget must be more than 0s (got %s)", o.budget)
	}
	a, err := app.LoadScan(o.file)
	if err != nil {
		return nil, nil, err
	}
	if err := a.Guard(o.allowed); err != nil {
		return nil, nil, err
	}
	for _, f := range source.Formats() {
		path := *o.sources[f.Name]
		if path == "" {
			continue
		}
		origin := a.Origin()
		if origin == "" {
			return nil, nil, fmt.Errorf("--%s: %s does not say where the program serves: set ready, for example http://127.0.0.1:8080/", f.Name, o.file)
		}
		requests, lines, err := f.File(path, origin)
		if err != nil {
			return nil, nil, fmt.Errorf("--%s: %w", f.Name, err)
		}
		if err := a.Import(requests); err != nil {
			return nil, nil, fmt.Errorf("--%s: %s: %w", f.Name, path, err)
		}
		unused = append(unused, lines...)
	}
	if o.save != "" {
		if err := os.MkdirAll(o.save, 0o750); err != nil {
			return nil, nil, fmt.Errorf("--save: %w", err)
		}
	}
	return a, unused, nil
}
