package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/findings"
	"github.com/oversell/oversell/internal/explore/program"
)

type verifyAppFlags struct {
	appFlags
	events []string
	budget time.Duration
	buyers int // per burst
}

const (
	minRushBuyers     = 2
	maxRushBuyers     = 1000
	defaultRushRounds = 5
)

var appOnlyFlags = []string{wipeFlag, "tries", "events", "budget", "rush-buyers"}

func (a *verifyAppFlags) register(c *cobra.Command) {
	addFlags(c, underProgram, func(flags *pflag.FlagSet) {
		a.appFlags.register(flags)
		flags.StringSliceVar(&a.events, "events", nil, "possible `events` at each step, as for shop explore --app")
		flags.DurationVar(&a.budget, "budget", time.Minute, "time for the search")
		flags.IntVar(&a.buyers, "rush-buyers", 50, fmt.Sprintf("buyers per burst, %d to %d", minRushBuyers, maxRushBuyers))
	})
}

// runApp verifies a program: it searches every schedule, and then sends bursts.
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
	rounds, err := o.rushRounds(c)
	if err != nil {
		return err
	}
	if len(p.Never) == 0 {
		return errors.New("verify --app sends bursts, which have too many orders to compare: list rules in `never` of the file, or use shop explore --app, which needs none")
	}
	if err := o.output.check(nil); err != nil {
		return err
	}
	r, err := o.verifyApp(c, p, config, rounds)
	if err != nil && r.Explore.Runs == 0 { // there is no result to report
		return err
	}
	if err != nil || c.Context().Err() != nil {
		r.Unfinished = unfinished(c.Context(), err)
	}
	r.Finish()
	d, docErr := r.Document(search.origin(), c.CommandPath(), search.app.given())
	if docErr == nil {
		docErr = o.output.output.write(c, d, r.Text)
	}
	if err := errors.Join(err, docErr, c.Context().Err()); err != nil {
		return err
	}
	if r.Broken() {
		return &exitError{exitBroken, ""}
	}
	if why := r.Unproven(); why != "" {
		return &exitError{exitInconclusive, why}
	}
	return nil
}

// rushRounds checks the flags of the bursts and returns how many to send.
func (o *verifyOptions) rushRounds(c *cobra.Command) (rounds int, _ error) {
	rounds = defaultRushRounds
	if c.Flags().Changed("repeat") {
		rounds = o.repeat
	}
	return rounds, cmp.Or(
		checkRange("rush-buyers", o.app.buyers, minRushBuyers, maxRushBuyers),
		checkRange("repeat", rounds, 1, maxRepeat),
	)
}

// verifyApp runs the search and the bursts. With an error it also returns the results so far.
func (o *verifyOptions) verifyApp(c *cobra.Command, p *app.App, config explore.Config, rounds int) (r findings.Program, err error) {
	ctx := c.Context()
	opened, err := program.Open(ctx, p, config)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	progress := newProgress(c.ErrOrStderr())
	explorer, err := opened.Begin(ctx, &config, progress.show)
	if err != nil {
		return r, err
	}
	defer progress.clear()
	if r.Explore, err = program.Search(ctx, explorer, config); err != nil || ctx.Err() != nil {
		return r, err
	}
	r.Rush, err = opened.Rush(ctx, o.app.buyers, rounds, progress.show)
	return r, err
}
