package explore

import (
	"context"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A mode does the parts of a search that are not the same for a strategy of the catalogue and for a program
// under test.
type mode interface {
	// name returns the name of the strategy or the program.
	name() string
	// check returns what is wrong with the configuration, in one line.
	check() error
	// schedule returns a schedule for a replay string.
	schedule(tokens []string) Schedule
	// stocked reports whether the schedule belongs to this stock.
	stocked(s Schedule) bool
	// merges reports whether equal states may be continued once.
	merges() bool
	// diverged returns the error for a schedule that did not repeat: the same choices led to other choices.
	diverged(details string) error
	// hint adds to the error of a replay string what the user can do.
	hint(err error) error
	// violations keeps the violations of a search.
	violations(s *search) violations
	// origin fills in what is explored, and the command that repeats the search.
	origin(r *Report)
}

// violations are the violations of one search.
type violations interface {
	// begin records that a run has ended, before rank. afterVoid reports that the previous run was void.
	begin(afterVoid bool)
	// doubt records that a run was void.
	doubt()
	// ended counts a schedule that was run to its end.
	ended(e schedule.Ended)
	// rank keeps a violation if it is one of the best.
	rank(e schedule.Ended)
	// spent reports whether the search has no more time.
	spent() bool
	// isLate reports whether no time is left for replaying and shrinking.
	isLate(ctx context.Context) bool
	// show repeats the runs that will be shown to people.
	show(ctx context.Context) error
}

// mode returns the mode of what is explored. No other function of the search asks for that.
func (c Config) mode() mode {
	if c.Program != "" {
		return programMode{c}
	}
	return strategyMode{c}
}
