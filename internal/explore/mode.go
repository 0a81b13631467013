package explore

import (
	"context"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A mode is the part of a search that differs between strategies of the catalogue and programs under test.
type mode interface {
	// name returns the name of the strategy or the program.
	name() string
	// check returns the first mistake in the configuration, as one line.
	check() error
	// schedule returns a schedule for a replay string.
	schedule(tokens []string) Schedule
	// stocked reports whether the schedule has the stock of this configuration. Only then can it be run.
	stocked(s Schedule) bool
	// merges reports whether equal states may be merged.
	merges() bool
	// diverged returns the error for a schedule that did not repeat: after the same choices, the next choices were
	// different.
	diverged(details string) error
	// hint adds advice for the user to an error about a replay string.
	hint(err error) error
	// violations returns the collection of a search's violations.
	violations(s *search) violations
	// origin sets the fields of the report that name the strategy or program, and the command that repeats the search.
	origin(r *Report)
}

// violations are the violations of one search.
type violations interface {
	// begin is called after each run, before rank. If the explorer lost control of the run before that (it was void),
	// `afterVoid` is true.
	begin(afterVoid bool)
	// doubt records that the latest run was void, so a violation in the run before it is doubtful.
	doubt()
	// ended counts a schedule that ran to its end.
	ended(e schedule.Ended)
	// rank keeps a violation if it is among the best so far.
	rank(e schedule.Ended)
	// spent reports whether the search has no more time.
	spent() bool
	// isLate reports whether no time is left for replaying and shrinking.
	isLate(ctx context.Context) bool
	// show repeats the runs that the report will show.
	show(ctx context.Context) error
}

// mode returns the mode of the configuration. Only this function distinguishes strategies from programs.
func (c Config) mode() mode {
	if c.Program != "" {
		return programMode{c}
	}
	return strategyMode{c}
}
