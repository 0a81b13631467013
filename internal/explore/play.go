package explore

import (
	"context"
	"errors"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// Types for a user who chooses the steps.
type (
	// A Point is the state of a schedule between two steps, with the possible next steps.
	Point = schedule.Point
	// A View is a point as shown to the user.
	View = schedule.View
	// Ended describes the end of a schedule.
	Ended = schedule.Ended
)

// Play runs one schedule. The function `choose` selects each step, for example by asking a user, and may take any time.
// The witness is nil if the schedule did not run to its end.
func (x *Explorer) Play(ctx context.Context, choose func(p *Point) (token string, err error)) (Ended, *Witness, error) {
	e, err := x.runner.Run(ctx, choose, true)
	if err != nil || e.Pruned || e.Cut {
		return e, nil, err
	}
	return e, x.witness(e.Tokens, e), nil
}

// With returns an explorer with other values of Bound, Budget, Schedules, First and Progress. It uses x's connections,
// so the two must not run at the same time, and only one of them must be closed.
func (x *Explorer) With(change func(c *Config)) *Explorer {
	other := *x
	change(&other.config)
	return &other
}

// Switches returns the number of switches to another buyer in a schedule.
func Switches(tokens []string) int {
	return newCandidate(Ended{Tokens: tokens}).cost[1]
}

// A Way is the result of Shortest: the shortest schedule whose end is as wanted.
type Way struct {
	Tokens   []string // the steps; nil if no such schedule was found
	Switches int      // number of switches between buyers
	Events   int
	Complete bool // no shorter schedule exists or, if Tokens is nil, no schedule with the wanted end
	Explored int  // number of schedules that were compared
}

// Shortest finds the shortest schedule that begins with the steps `after`, and for whose end `wanted` returns true.
// Among the shortest, it takes the one with the fewest switches. Way.Tokens excludes `after`. If the budget or ctx ends
// first, the result is not Complete. Shortest requires a strategy, and a database on which the search can merge equal
// states.
func (x *Explorer) Shortest(ctx context.Context, after []string, wanted func(*Ended) bool) (Way, error) {
	config := x.config
	config.Symmetry, config.First = config.Symmetry && len(after) == 0, false // after the given steps, the buyers are not interchangeable
	s := newSearch(newExplorer(config, following{x.runner, after}, nil))
	if !s.result.Merged {
		return Way{}, errNotMerged
	}
	g := newGraph(s)
	g.before = lastBuyer(after)
	if err := s.runAll(ctx, g); err != nil && ctx.Err() == nil {
		return Way{}, err
	}
	w := Way{Complete: s.result.Complete}
	if g.root == nil {
		return w, nil
	}
	g.count()
	w.Explored = s.result.Explored
	if c := g.shortest(wanted); c != nil {
		w.Tokens, w.Switches, w.Events = c.Tokens, c.cost[1], c.cost[2]
	}
	return w, nil
}

// lastBuyer returns the buyer of the last step that has a buyer; 0 if there is none.
func lastBuyer(tokens []string) int {
	for _, token := range slices.Backward(tokens) {
		if token[0] >= '1' && token[0] <= '9' {
			return int(token[0] - '0')
		}
	}
	return 0
}

// errNotMerged reports that the search cannot merge equal states. It would have to run every schedule.
var errNotMerged = errors.New("the shortest way needs merged states: SQLite or a private database, without Full and Overlap")

// following is a runner whose schedules all begin with the same steps. It calls the chooser only after these steps.
type following struct {
	schedule.Runner
	steps []string
}

// Run implements schedule.Runner.
func (f following) Run(ctx context.Context, choose schedule.Chooser, observe bool) (schedule.Ended, error) {
	e, err := f.Runner.Run(ctx, func(p *schedule.Point) (string, error) {
		if p.Depth < len(f.steps) {
			return f.steps[p.Depth], nil
		}
		p.Depth -= len(f.steps)
		return choose(p)
	}, observe)
	e.Tokens = e.Tokens[min(len(f.steps), len(e.Tokens)):]
	return e, err
}

// Report returns the report on a search of this explorer.
func (x *Explorer) Report(r Result) Report { return NewReport(x.config, r) }
