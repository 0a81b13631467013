package explore

import (
	"context"
	"errors"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// What a person who chooses the steps sees.
type (
	// A Point is where a schedule stands, see schedule.Point.
	Point = schedule.Point
	// A View is a point as people see it.
	View = schedule.View
	// Ended is how a schedule ended.
	Ended = schedule.Ended
)

// Play runs one schedule whose steps somebody else chooses: a person, where Search has a plan.
// choose may take as long as it wants. The witness is nil where it was not run to its end.
func (x *Explorer) Play(ctx context.Context, choose func(p *Point) (token string, err error)) (Ended, *Witness, error) {
	e, err := x.runner.Run(ctx, choose, true)
	if err != nil || e.Pruned || e.Cut {
		return e, nil, err
	}
	return e, x.witness(e.Tokens, e), nil
}

// With is this explorer with other bounds of its searches: Bound, Budget, Schedules, First and
// Progress. It has the same connections: one of the two may run at a time, and one is closed.
func (x *Explorer) With(change func(c *Config)) *Explorer {
	other := *x
	change(&other.config)
	return &other
}

// Switches is how often a schedule goes on with another buyer than before.
func Switches(tokens []string) int {
	return newCandidate(Ended{Tokens: tokens}).cost[1]
}

// A Way is the shortest schedule to an end.
type Way struct {
	Tokens   []string // its steps; nil: none was found
	Switches int      // from one buyer to another
	Events   int
	Complete bool // no other way is shorter, or where there are no Tokens none leads there
	Explored int  // the schedules that were compared
}

// Shortest looks for the shortest schedule that begins with these steps, and whose end is
// wanted: of those with the fewest steps the one with the fewest switches. What comes before
// is no part of it. It ends with the budget of the configuration or with ctx, and is not
// Complete then. It is for strategies of ours, on a database in which states are merged.
func (x *Explorer) Shortest(ctx context.Context, after []string, wanted func(*Ended) bool) (Way, error) {
	config := x.config
	config.Symmetry, config.First = config.Symmetry && len(after) == 0, false // who has not begun is another one than at the root
	s := newSearch(&Explorer{config: config, runner: following{x.runner, after}})
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

// lastBuyer is who made the last step that was a buyer's; 0: nobody.
func lastBuyer(tokens []string) int {
	for _, token := range slices.Backward(tokens) {
		if token[0] >= '1' && token[0] <= '9' {
			return int(token[0] - '0')
		}
	}
	return 0
}

// errNotMerged: the way would take every order to be run.
var errNotMerged = errors.New("the shortest way is found where states are merged: on SQLite, and without Full and Overlap")

// following is a runner whose schedules all begin with the same steps: who chooses is asked
// from there on, and hears nothing of them.
type following struct {
	schedule.Runner
	steps []string
}

// Run is schedule.Runner.Run.
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

// Report says what a search of this explorer came to.
func (x *Explorer) Report(r Result) Report { return NewReport(x.config, r) }
