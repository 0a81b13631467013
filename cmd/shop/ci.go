package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/draft"
	"github.com/oversell/oversell/internal/judge/ci"
	"github.com/oversell/oversell/internal/judge/ci/format"
	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/ci/system"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/judge/verify"
	"github.com/oversell/oversell/internal/version"
)

type ciOptions struct {
	apps       []string
	target     string
	strategies []string
	args       string
	budget     time.Duration
	shard      string
	baselines  []string
	strict     bool
	out        string
	cache      string
	needs      bool
	output     output
}

func ciCommand() *cobra.Command {
	var o ciOptions
	c := &cobra.Command{
		Use:   "ci",
		Short: "Check a repository in a CI job, and report the result to reviewers",
		Long: `Search every schedule of the programs that oversell.yaml files describe, and with --target test a
running service. The results go to a folder, and to the result pages of GitHub, GitLab or Buildkite.
A check that proves nothing runs once more. With --baseline, only a break that the baseline lacks fails
the job.

Exit codes: 0 every check holds or breaks as in the baseline, 1 a break, 2 error, 3 a check proved
nothing, 130 interrupted.`,
		Example: `  shop ci
  shop ci --app shop/oversell.yaml --baseline main.json`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	flags := c.Flags()
	flags.StringArrayVar(&o.apps, "app", nil, "`file` that describes a program, or a pattern; repeatable (default: oversell.yaml)")
	flags.StringVar(&o.target, "target", "", targetUsage)
	flags.StringSliceVar(&o.strategies, "strategy", []string{"all"}, "with --target: `names` of its strategies, comma-separated, or all")
	flags.StringVar(&o.args, "args", "", "more `flags` of explore --app and verify --target, in one text")
	flags.DurationVar(&o.budget, "budget", defaultBudget, "time for the search of each program")
	flags.StringVar(&o.shard, "shard", "", "`part` of the checks for this job, for example 1/3")
	flags.StringArrayVar(&o.baselines, "baseline", nil, "result.json `file` of another branch, or a pattern; repeatable")
	flags.BoolVar(&o.strict, "strict", false, "exit code 1 also for breaks of the baseline")
	flags.StringVar(&o.out, "out", "oversell-ci", "`folder` for the results and the replay files")
	flags.StringVar(&o.cache, "cache", "", "`folder` for results, which an unchanged repository reuses")
	flags.BoolVar(&o.needs, "needs", false, "print the servers that the checks start, and run nothing")
	o.output.register(c)
	setHelp(c, "docs/guides/add-to-ci.md", "app", "target", "args", "baseline", "cache")
	return c
}

func (o *ciOptions) run(c *cobra.Command) error {
	config, err := o.check(c)
	if err != nil {
		return err
	}
	if o.needs {
		for _, kind := range ci.Needs(c.Context(), config) {
			fmt.Fprintln(c.OutOrStdout(), kind)
		}
		return nil
	}
	progress := newProgress(c.ErrOrStderr())
	config.Progress = progress.show
	config.Warn = func(text string, args ...any) {
		progress.clear()
		fmt.Fprintf(c.ErrOrStderr(), "shop: "+text+"\n", args...)
	}
	log := c.OutOrStdout()
	if !o.output.printsText() {
		log = c.ErrOrStderr() // standard output carries a format other than text
	}
	config.Ended = func(check result.Check) {
		progress.clear()
		_ = check.Text(log) // the result does not depend on the log
	}
	if b := config.Baseline; b != nil && b.Ignored != "" {
		config.Warn("--baseline is not used: %s; every break counts as new", b.Ignored)
	}
	r := ci.Run(c.Context(), config)
	progress.clear()
	d := r.Document()
	summary, err := report.Markdown(d)
	err = cmp.Or(format.Write(o.out, r, config.Warn), err, o.output.write(c, d, func(w io.Writer, _ bool) error {
		lines := append(append([]string{"", d.Title}, d.Notes...), "results: "+o.out)
		if r.Exit == 0 {
			lines = append(lines, "what exit code 0 proves: "+report.Proof("explore"))
		}
		_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
		return err
	}))
	for _, failed := range system.Publish(c.Context(), system.Publication{Env: os.Getenv, Log: log, Folder: o.out, Summary: summary, Result: r}) {
		config.Warn("%s", oneLine(failed))
	}
	switch {
	case c.Context().Err() != nil:
		return errors.Join(c.Context().Err(), err)
	case r.Exit == exitBroken: // the verdict decides, even if a file could not be written
		if err != nil {
			config.Warn("%s", oneLine(err))
		}
		return &exitError{exitBroken, ""}
	case err != nil:
		return err
	case r.Exit == exitHarness:
		return &exitError{exitHarness, r.Problem(result.Error)}
	case r.Exit == exitInconclusive:
		return &exitError{exitInconclusive, r.Problem(result.Inconclusive)}
	}
	return nil
}

// check reads the flags, and the files that they name, before anything starts.
func (o *ciOptions) check(c *cobra.Command) (config ci.Config, err error) {
	config = ci.Config{Strict: o.strict, Out: o.out, Cache: o.cache, Shop: version.Current().Version}
	if config.Root, err = system.Root(os.Getenv); err != nil {
		return config, err
	}
	switch {
	case o.budget <= 0:
		return config, fmt.Errorf("--budget must be more than 0s (got %s)", o.budget)
	case o.strict && len(o.baselines) == 0:
		return config, errors.New("--strict requires --baseline")
	case o.out == "":
		return config, errors.New("--out needs a folder")
	case o.target == "" && c.Flags().Changed("strategy"):
		return config, errors.New("--strategy requires --target")
	}
	if o.shard != "" {
		if config.Shard, err = ci.ParseShard(o.shard); err != nil {
			return config, err
		}
	}
	more := moreFlags()
	if err := more.parse(o.args); err != nil {
		return config, err
	}
	if config.Apps, err = o.readApps(more); err != nil {
		return config, err
	}
	if o.target != "" {
		if config.Target, err = o.service(more); err != nil {
			return config, err
		}
	} else if err := rejectFlags(more.command, "in --args requires --target", more.ofTarget...); err != nil {
		return config, err
	}
	if len(o.baselines) > 0 {
		config.Baseline = result.ReadBaseline(ci.Files(o.baselines))
	}
	if o.needs {
		return config, nil
	}
	if err := format.Prepare(o.out); err != nil {
		return config, fmt.Errorf("--out: %w", err)
	}
	return config, nil
}

func (o *ciOptions) readApps(more *ciFlags) (apps []ci.App, _ error) {
	files := ci.Files(o.apps)
	if len(o.apps) == 0 {
		_, err := os.Stat(draft.FileName)
		switch {
		case err == nil:
			files = []string{draft.FileName}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		case o.target == "":
			return nil, fmt.Errorf("there is no %s here; write one with shop init, or name yours with --app FILE", draft.FileName)
		}
	}
	if len(files) == 0 {
		return nil, rejectFlags(more.command, "in --args requires a program; add --app FILE", more.ofApp...)
	}
	for _, file := range files {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--app: there is no file %s; write one with shop init", file)
		}
		a, err := o.readApp(file, more)
		if err != nil {
			return nil, err
		}
		apps = append(apps, a)
	}
	return apps, nil
}

func (o *ciOptions) readApp(file string, more *ciFlags) (a ci.App, err error) {
	search := more.explore
	search.app.file, search.Budget, search.format = file, o.budget, "text"
	if a.App, err = app.LoadScan(file); err != nil {
		return a, err
	}
	if a.Scan = len(a.App.Buyers) == 0 && len(a.App.Requests) > 0; !a.Scan {
		if a.App, err = app.Load(file); err != nil {
			return a, err
		}
	}
	if err := a.App.Guard(search.app.allowed); err != nil {
		return a, err
	}
	if more.command.Flags().Changed("buyers") {
		if err := a.App.SetBuyers(search.Buyers); err != nil {
			return a, err
		}
	}
	if a.Search, err = search.checkApp(more.command, a.App); err != nil {
		return a, err
	}
	if a.Scan {
		a.Search.Buyers = 2 // each pair is two requests
		if a.ScanFlags = more.given([]string{wipeFlag}); o.budget != scanBudget {
			a.ScanFlags += " --budget " + o.budget.String()
		}
	}
	a.Path, a.Flags = file, more.given(more.ofApp)
	if o.budget != defaultBudget {
		a.Flags += " --budget " + o.budget.String()
	}
	return a, a.Search.Check()
}

func (o *ciOptions) service(more *ciFlags) (t *ci.Target, err error) {
	v := more.verify
	v.target, v.strategies = o.target, o.strategies
	t = &ci.Target{Flags: more.given(slices.DeleteFunc(slices.Clone(more.ofTarget), func(name string) bool { return name == "fault" }))}
	if t.Faults, err = v.checkTarget(more.command); err != nil {
		return nil, err
	}
	t.Service = verify.Service{URL: v.target, Token: os.Getenv("SHOP_ADMIN_TOKEN"), Product: v.product, Strategies: v.strategies, NoKeys: v.noKeys}
	return t, nil
}

// ciFlags are the flags in --args. Each belongs to the search of a program or to the test of a service.
type ciFlags struct {
	command         *cobra.Command
	explore         exploreOptions
	verify          verifyOptions
	ofApp, ofTarget []string // names of the flags
}

func moreFlags() *ciFlags {
	f := &ciFlags{command: &cobra.Command{}}
	register := func(names *[]string, add func(*pflag.FlagSet)) {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		add(set)
		*names = flagNames(set)
		f.command.Flags().AddFlagSet(set)
	}
	register(&f.ofApp, func(set *pflag.FlagSet) {
		f.explore.registerSearch(set)
		f.explore.app.registerSearch(set)
	})
	register(&f.ofTarget, f.verify.registerTarget)
	return f
}

func (f *ciFlags) parse(text string) error {
	flags := f.command.Flags()
	if err := flags.Parse(strings.Fields(text)); err != nil {
		return fmt.Errorf("--args: %w; it takes --%s", err, strings.Join(append(slices.Clone(f.ofApp), f.ofTarget...), ", --"))
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("--args takes only flags (got %q)", flags.Arg(0))
	}
	return nil
}

// given returns those of the named flags that --args sets, as the function `given` does.
func (f *ciFlags) given(names []string) string { return given(f.command.Flags(), names) }

func flagNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

// given returns the named flags that the user has set, quoted for a shell, with a leading space, or "".
func given(flags *pflag.FlagSet, names []string) (text string) {
	flags.Visit(func(flag *pflag.Flag) {
		switch {
		case !slices.Contains(names, flag.Name):
		case flag.Value.Type() == "bool":
			text += strings.TrimSuffix(fmt.Sprintf(" --%s=%s", flag.Name, flag.Value), "=true")
		default:
			value := flag.Value.String()
			if list, isList := flag.Value.(pflag.SliceValue); isList {
				value = strings.Join(list.GetSlice(), ",")
			}
			text += fmt.Sprintf(" --%s %s", flag.Name, trial.ShellWord(value))
		}
	})
	return text
}
