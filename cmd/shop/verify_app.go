package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/explore"
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

// runApp verifies a program: it searches every schedule of its buyers' commands, and then sends bursts of
// buyers.
func (o *verifyOptions) runApp(c *cobra.Command) (err error) {
	search := exploreOptions{Config: explore.Config{Budget: o.app.budget, Bound: -1}, app: o.app.appFlags, events: o.app.events, format: "text"}
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
	progress := newProgress(c.ErrOrStderr())
	r, err := program.Verify(c.Context(), p, config, program.Bursts{Buyers: o.app.buyers, Rounds: rounds}, progress.show)
	progress.clear()
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
