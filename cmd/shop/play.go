package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/nearest"
	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/level"
	"github.com/oversell/oversell/internal/teach/play/results"
	"github.com/oversell/oversell/internal/teach/play/terminal"
)

// progressEnv is the environment variable for --progress.
const progressEnv = "SHOP_PROGRESS"

type playOptions struct {
	config    play.Config
	events    []string
	instances string
	level     string
	list      bool
	json      bool // print --levels as JSON
	progress  string
}

func playCommand() *cobra.Command {
	var o playOptions
	c := &cobra.Command{
		Use:   "play STRATEGY | --level NAME | --levels",
		Short: "Be the scheduler: choose the next command, and break a lock",
		Long: `Two buyers run a strategy's own code, each stopped before its next command. You choose which buyer
continues. In a level you reach a given result, or claim that no schedule breaks the code. play reads words,
one or several per line: 1 or 2 runs that buyer's command, the name of an event triggers it, undo takes
a step back, hint helps, prove makes the claim, help lists all words. shop serve has the same game at /play.

Exit codes: 0 done, 2 error, 3 the moves of a file or pipe did not win the level, 130 interrupted.`,
		Example: `  shop play redis --events expire
  echo "1 1 2 2 2 2 2 1 1 1" | shop play --level sell-twice`,
		ValidArgsFunction: completeFirst(lockstrategy.Names),
		Args:              func(_ *cobra.Command, args []string) error { return o.args(args) },
		RunE: func(c *cobra.Command, args []string) error {
			if o.list {
				return o.printLevels(c)
			}
			return o.run(c, args)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.level, "level", "", "`name` of a level; list: shop play --levels")
	flags.BoolVar(&o.list, "levels", false, "list of the levels with par and your best result")
	flags.BoolVar(&o.json, "json", false, "with --levels: JSON")
	flags.IntVar(&o.config.Buyers, "buyers", 2, fmt.Sprintf("number of buyers, %d to %d", explore.MinBuyers, play.MostBuyers))
	flags.Int64Var(&o.config.Stock, "stock", 1, "units on sale")
	flags.Int64Var(&o.config.Units, "units", 1, "units per order")
	flags.StringSliceVar(&o.events, "events", nil, "`events`: "+explore.EventNames()+", or all")
	flags.StringVar(&o.instances, "instances", "own", "own: one process per buyer; shared: one process for all")
	flags.StringVar(&o.progress, "progress", os.Getenv(progressEnv), "`file` for your results (default: in your configuration folder) ["+progressEnv+"]")
	setHelp(c, "docs/guides/run-a-workshop.md", "level", "levels", "events", "buyers")
	return c
}

// flagsOfLevel lists the flags that a level sets.
var flagsOfLevel = []string{"buyers", "stock", "units", "events", "instances"}

func (o *playOptions) args(args []string) error {
	switch {
	case o.list && (o.level != "" || len(args) > 0):
		return errors.New("--levels cannot be combined with a strategy or --level")
	case o.json && !o.list:
		return errors.New("--json requires --levels; for a game's JSON, run its last line: shop explore ... --json")
	case o.level != "" && len(args) > 0:
		return fmt.Errorf("--level sets the strategy; leave out %q", args[0])
	case !o.list && o.level == "" && len(args) != 1:
		return fmt.Errorf("play needs one strategy (got %d) or --level; list them with: shop strategies, shop play --levels", len(args))
	}
	return nil
}

func (o *playOptions) printLevels(c *cobra.Command) error {
	file, err := o.file()
	if err != nil {
		return err
	}
	best, err := file.Load()
	if err != nil {
		return err
	}
	if o.json {
		return report.JSON(c.OutOrStdout(), terminal.Levels(best))
	}
	return terminal.List(c.OutOrStdout(), best)
}

func (o *playOptions) file() (f results.File, err error) {
	if f.Path = o.progress; f.Path == "" {
		f.Path, err = results.DefaultPath()
	}
	return f, err
}

// session checks the flags before any server is opened. It returns a session whose game is not set yet.
func (o *playOptions) session(c *cobra.Command, args []string) (s *terminal.Session, err error) {
	s = &terminal.Session{Now: time.Now, Keep: func(results.Result) error { return nil }}
	if o.level == "" {
		if _, known := level.Named(args[0]); known {
			return nil, fmt.Errorf("%s is a level, not a strategy; use: shop play --level %[1]s", args[0])
		}
		o.config.Strategy, o.config.Shared = args[0], o.instances == "shared"
		if o.config.Events, err = explore.ParseEvents(o.events); err != nil {
			return nil, fmt.Errorf("--events: %w", err)
		}
		if err := checkChoice("instances", o.instances, "own", "shared"); err != nil {
			return nil, err
		}
		for _, f := range []struct {
			name  string
			given int64
		}{{"buyers", int64(o.config.Buyers)}, {"stock", o.config.Stock}, {"units", o.config.Units}} {
			if f.given < 1 { // play.Config.Filled would replace 0 by the default
				return nil, fmt.Errorf("--%s must be 1 or more (got %d)", f.name, f.given)
			}
		}
		return s, o.config.Filled().Check()
	}
	if err := rejectFlags(c, "cannot be combined with --level, which sets it", flagsOfLevel...); err != nil {
		return nil, err
	}
	l, known := level.Named(o.level)
	if !known {
		return nil, nearest.Unknown("level", o.level, level.Names(), "shop play --levels")
	}
	file, err := o.file()
	if err != nil {
		return nil, err
	}
	if _, err := file.Load(); err != nil {
		return nil, err
	}
	s.Level, o.config = &l, l.Config
	s.Keep = func(r results.Result) error { return file.Add(l.Name, r) }
	return s, nil
}

func (o *playOptions) run(c *cobra.Command, args []string) (err error) {
	s, err := o.session(c, args)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	defer explore.OneProcessor(false)()
	s.Game, err = play.Open(ctx, o.config)
	if errors.Is(err, play.ErrMissing) {
		return fmt.Errorf("%w (try shop explore; play runs only on the embedded engine)", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Game.Close()) }()
	reader, keyboard := c.InOrStdin().(*os.File)
	keyboard = keyboard && isatty.IsTerminal(reader.Fd())
	prompt := ""
	if keyboard {
		prompt = "> "
	}
	if err := s.Plain(ctx, c.InOrStdin(), c.OutOrStdout(), prompt); err != nil {
		return err
	}
	if s.Level != nil && !s.Won() && !keyboard {
		return &exitError{exitInconclusive, fmt.Sprintf("level %s was not won", s.Level.Name)}
	}
	return nil
}
