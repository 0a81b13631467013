package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/level"
	"github.com/oversell/oversell/internal/teach/play/results"
	"github.com/oversell/oversell/internal/teach/play/terminal"
)

// progressEnv names the progress file, as --progress does.
const progressEnv = "SHOP_PROGRESS"

type playOptions struct {
	config    play.Config
	events    []string
	instances string
	level     string
	list      bool
	json      bool // of the list
	plain     bool
	progress  string
}

func playCommand() *cobra.Command {
	var o playOptions
	c := &cobra.Command{
		Use:   "play STRATEGY | --level NAME | --levels",
		Short: "Be the scheduler: choose whose command goes next, and break a lock",
		Long: `Two buyers stand before the database and Redis with their next commands, and you
choose who goes: the strategy's own code, on the embedded engine, held at the
explorer's gates. At the end stand the verdict, the order as a table, and the
line that runs it again.

A level asks for an end, or for the claim that nobody can break the code, which
the explorer answers by running every order. Its par is the explorer's, too.

In a terminal: 1 and 2 let a buyer's command go, the arrows and Enter choose
among all, e an event, u takes a step back, h is a hint, p the claim, ? lists the
keys. Where input or output is no terminal, and with --plain, words are read line
by line: those of the choices, and ` + "`undo`, `hint`, `prove`, `quit`" + `.

Exit code: 0; 2 when something is missing or wrong; 3 when the level was not won
and the words came from a file or a pipe; 130 after Ctrl-C there.`,
		Example: `  shop play none
  shop play redis --events expire
  shop play --levels
  shop play --level sell-twice
  echo "1 1 2 2 2 2 2 1 1 1" | shop play --level sell-twice`,
		Args: func(_ *cobra.Command, args []string) error { return o.args(args) },
		RunE: func(c *cobra.Command, args []string) error {
			if o.list {
				return o.printLevels(c)
			}
			return o.run(c, args)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.level, "level", "", "play a level; --levels lists them")
	flags.BoolVar(&o.list, "levels", false, "list the levels, with par and your best")
	flags.BoolVar(&o.json, "json", false, "with --levels: print JSON")
	flags.IntVar(&o.config.Buyers, "buyers", 2, fmt.Sprintf("buyers; %d to %d", explore.MinBuyers, play.MostBuyers))
	flags.Int64Var(&o.config.Stock, "stock", 1, "units on sale")
	flags.Int64Var(&o.config.Units, "units", 1, "units that each buyer asks for")
	flags.StringSliceVar(&o.events, "events", nil, "what you may have happen, once each: "+explore.EventNames()+"; or all")
	flags.StringVar(&o.instances, "instances", "own", "own: each buyer a process of its own; shared: all in one")
	flags.BoolVar(&o.plain, "plain", false, "read words line by line, and print text")
	flags.StringVar(&o.progress, "progress", os.Getenv(progressEnv), "file of your results; unless given, oversell/progress.json in your folder for configurations ($"+progressEnv+")")
	return c
}

// levelHasThem are flags that a level sets by itself.
var levelHasThem = []string{"buyers", "stock", "units", "events", "instances"}

func (o *playOptions) args(args []string) error {
	switch {
	case o.list && (o.level != "" || len(args) > 0):
		return errors.New("--levels lists all of them; give it alone")
	case o.json && !o.list:
		return errors.New("--json is for --levels; a game at its end has a line that shop explore runs again, as JSON with --json")
	case o.level != "" && len(args) > 0:
		return fmt.Errorf("--level has a strategy of its own; %q is one word too many", args[0])
	case !o.list && o.level == "" && len(args) != 1:
		return fmt.Errorf("give one strategy, or --level, see --levels; the strategies are %s", strings.Join(lockstrategy.Names(), ", "))
	}
	return nil
}

// printLevels lists them.
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

// session checks what was given, before anything is opened. Its game is still to come.
func (o *playOptions) session(c *cobra.Command, args []string) (s *terminal.Session, err error) {
	s = &terminal.Session{Now: time.Now, Keep: func(results.Result) error { return nil }}
	if o.level == "" {
		if _, known := level.Named(args[0]); known {
			return nil, fmt.Errorf("%s is a level; shop play --level %s plays it", args[0], args[0])
		}
		o.config.Strategy, o.config.Shared = args[0], o.instances == "shared"
		if o.config.Events, err = explore.ParseEvents(o.events); err != nil {
			return nil, fmt.Errorf("--events: %w", err)
		}
		if o.instances != "own" && o.instances != "shared" {
			return nil, fmt.Errorf("--instances is %q; there are own and shared", o.instances)
		}
		for _, f := range []struct {
			name  string
			given int64
		}{{"buyers", int64(o.config.Buyers)}, {"stock", o.config.Stock}, {"units", o.config.Units}} {
			if f.given < 1 { // 0 would be the default
				return nil, fmt.Errorf("--%s is %d; give 1 or more", f.name, f.given)
			}
		}
		return s, o.config.Filled().Check()
	}
	for _, name := range levelHasThem {
		if c.Flags().Changed(name) {
			return nil, fmt.Errorf("--%s is the level's; give a strategy instead of --level", name)
		}
	}
	l, known := level.Named(o.level)
	if !known {
		return nil, fmt.Errorf("level %q is not known; there are %s", o.level, strings.Join(level.Names(), ", "))
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
		return fmt.Errorf("%w (with shop explore: play has the embedded engine alone)", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Game.Close()) }()
	reader, keyboard := c.InOrStdin().(*os.File)
	keyboard = keyboard && isatty.IsTerminal(reader.Fd())
	if !o.plain && keyboard && isTerminal(c.OutOrStdout()) {
		return s.Screen(ctx, reader, c.OutOrStdout())
	}
	prompt := ""
	if keyboard {
		prompt = "> "
	}
	if err := s.Plain(ctx, c.InOrStdin(), c.OutOrStdout(), prompt); err != nil {
		return err
	}
	if s.Level != nil && !s.Won() && !keyboard {
		return &exitError{exitInconclusive, fmt.Sprintf("level %s is not won", s.Level.Name)}
	}
	return nil
}
