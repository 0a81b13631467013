package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/findings"
	"github.com/oversell/oversell/internal/explore/program"
)

// verifyApp are the flags of verify for a program that is not ours.
type verifyApp struct {
	appFlags
	events []string
	budget time.Duration
	buyers int // of a crowd
}

// Of a rush at a program.
const (
	fewestInRush = 2
	mostInRush   = 1000
	appRounds    = 5 // unless --repeat is given
)

// ofPrograms are the flags that verifyApp has beside --app.
var ofPrograms = []string{wipeFlag, "tries", "events", "budget", "rush-buyers"}

func (a *verifyApp) register(c *cobra.Command) {
	a.appFlags.register(c)
	flags := c.Flags()
	flags.StringSliceVar(&a.events, "events", nil, "with --app: what may happen at any step of an order, as shop explore --app has it")
	flags.DurationVar(&a.budget, "budget", time.Minute, "with --app: time for the search of the orders")
	flags.IntVar(&a.buyers, "rush-buyers", 50, fmt.Sprintf("with --app: buyers in each crowd, all at once; %d to %d", fewestInRush, mostInRush))
}

// refuse is for a verify without --app.
func (a *verifyApp) refuse(c *cobra.Command) error {
	for _, name := range ofPrograms {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s is for a program of your own; give --app FILE", name)
		}
	}
	return nil
}

// runApp is verify of a program: the search of every order, and a rush.
func (o *verifyOptions) runApp(c *cobra.Command) (err error) {
	search := exploreOptions{app: o.app.appFlags, events: o.app.events, budget: o.app.budget, bound: -1, format: "text"}
	p, err := o.app.load(c)
	if err != nil {
		return err
	}
	config, err := search.checkApp(c, p)
	if err != nil {
		return err
	}
	rounds, err := o.checkRush(c)
	if err != nil {
		return err
	}
	if err := o.output.check(nil); err != nil {
		return err
	}
	r, err := o.verifyApp(c, p, config, rounds)
	if err != nil && r.Explore.Runs == 0 { // nothing was seen
		return err
	}
	if err != nil || c.Context().Err() != nil {
		r.Unfinished = unfinished(c.Context(), err)
	}
	r.Finish(search.events)
	d, wrong := r.Document(search.origin(), c.CommandPath(), search.app.given())
	if wrong == nil {
		wrong = o.output.output.write(c, d, r.Text)
	}
	if err := errors.Join(err, wrong, c.Context().Err()); err != nil {
		return err
	}
	if r.Broken() {
		return &exitError{exitBroken, ""}
	}
	if why := r.Unproven(search.events); why != "" {
		return &exitError{exitInconclusive, why}
	}
	return nil
}

// checkRush reads the flags of the rush.
func (o *verifyOptions) checkRush(c *cobra.Command) (rounds int, _ error) {
	rounds = appRounds
	if c.Flags().Changed("repeat") {
		rounds = o.repeat
	}
	switch {
	case o.app.buyers < fewestInRush || o.app.buyers > mostInRush:
		return 0, fmt.Errorf("--rush-buyers is %d; %d to %d are allowed", o.app.buyers, fewestInRush, mostInRush)
	case rounds < 1 || rounds > 1000:
		return 0, fmt.Errorf("--repeat is %d; 1 to 1000 are allowed", rounds)
	}
	return rounds, nil
}

// verifyApp returns what there is with an error, too.
func (o *verifyOptions) verifyApp(c *cobra.Command, p *app.App, config explore.Config, rounds int) (r findings.Program, err error) {
	ctx := c.Context()
	opened, err := program.Open(ctx, p, config)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	seen, err := opened.Runner.Check(ctx)
	if err != nil {
		return r, err
	}
	if err := seen.Err(); err != nil {
		return r, err
	}
	progress := newProgress(c.ErrOrStderr())
	x, err := opened.Explorer(&config, progress.show)
	if err != nil {
		return r, err
	}
	defer progress.clear()
	if r.Explore, err = program.Search(ctx, x, config); err != nil || ctx.Err() != nil {
		return r, err
	}
	r.Rush, err = opened.Rush(ctx, o.app.buyers, rounds, progress.show)
	return r, err
}
