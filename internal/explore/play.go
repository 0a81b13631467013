package explore

import (
	"context"
	"errors"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// The types for a person who chooses the steps.
type (
	// A Point is the situation of a schedule, see schedule.Point.
	Point = schedule.Point
	// A View is a point as it is shown to people.
	View = schedule.View
	// Ended describes the end of a schedule.
	Ended = schedule.Ended
)

// Play runs one schedule with steps that choose selects, for example a person. choose may take any
// time. The witness is nil if the schedule was not run to its end.
func (x *Explorer) Play(ctx context.Context, choose func(p *Point) (token string, err error)) (Ended, *Witness, error) {
	e, err := x.runner.Run(ctx, choose, true)
	if err != nil || e.Pruned || e.Cut {
		return e, nil, err
	}
	return e, x.witness(e.Tokens, e), nil
}

// With returns this explorer with other limits: Bound, Budget, Schedules, First and Progress. Both
// share the same connections, so only one of them may run at a time, and only one is closed.
func (x *Explorer) With(change func(c *Config)) *Explorer {
	other := *x
	change(&other.config)
	return &other
}

// Switches returns how often a schedule switches to another buyer.
func Switches(tokens []string) int {
	return newCandidate(Ended{Tokens: tokens}).cost[1]
}

// A Way is the shortest schedule to an end.
type Way struct {
	Tokens   []string // its steps; nil if none was found
	Switches int      // number of switches between buyers
	Events   int
	Complete bool // no shorter way exists or, without Tokens, no way at all
	Explored int  // number of schedules that were compared
}

// Shortest finds the shortest schedule that begins with these steps and ends as wanted. Among those
// with the fewest steps it takes the one with the fewest switches. The result excludes the given steps.
// The search ends with the budget of the configuration or with ctx, and is then not Complete. It works
// for strategies of the catalogue, on a database with merged states.
func (x *Explorer) Shortest(ctx context.Context, after []string, wanted func(*Ended) bool) (Way, error) {
	config := x.config
	config.Symmetry, config.First = config.Symmetry && len(after) == 0, false // after other steps, symmetry would begin at the wrong buyer
	s := newSearch(newExplorer(config, following{x.runner, after}, nil))
	if !s.result.Merged {
		return Way{}, errNotMerged
	}
	g := newGraph(s)
	g.before = lastBuyer(after)
	if err := s.all(ctx, g); err != nil && ctx.Err() == nil {
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

// lastBuyer returns the buyer of the last step that has one, or 0.
func lastBuyer(tokens []string) int {
	for _, token := range slices.Backward(tokens) {
		if token[0] >= '1' && token[0] <= '9' {
			return int(token[0] - '0')
		}
	}
	return 0
}

// errNotMerged reports a search that would have to run every schedule.
var errNotMerged = errors.New("the shortest way needs merged states: SQLite or a private database, without Full and Overlap")

// following is a runner whose schedules all begin with the same steps. The chooser is asked only after
// these steps.
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
