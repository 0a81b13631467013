// Package conduct executes one schedule. It asks for the possible moves, lets the search choose one,
// and makes it, until no move is left or the limit of steps is reached.
//
// The buyers are a Subject. Package own is the subject for strategies of this project, whose commands
// wait at gates in this process. Package target is the subject for a program in any language, behind
// gates on its connections. Neither has a loop, a limit or an account of events of its own.
package conduct

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Move is something that can happen next. C is the subject's command.
type Move[C comparable] struct {
	schedule.Choice
	Command C      // the command to release; for a timeout, the command whose wait ends; otherwise zero
	Second  C      // for a concurrent pair: sent before Command is answered
	During  string // token of another buyer's move in the pause that follows; "" if none
	Text    string // for an event or a request: description for people
	// Make makes the move without waiting for its effects; nil for plain commands.
	Make func(ctx context.Context) error
}

// A Subject is the buyers of one schedule. It serves one goroutine.
type Subject[C comparable] interface {
	// Begin lets the buyers begin, and returns when no buyer moves.
	Begin(ctx context.Context) error
	// Moves returns the next possible steps, buyer by buyer. It is empty when every buyer is
	// blocked and the timers that fire by themselves have fired.
	Moves(ctx context.Context) ([]Move[C], error)
	// Over reports whether no event can change anything any more, after Moves returned none.
	Over() bool
	// Describe adds the subject's information to a point.
	Describe(ctx context.Context, p *schedule.Point, moves []Move[C])
	// Do makes a move, and returns when no buyer moves.
	Do(ctx context.Context, m Move[C]) error
	// End ends the run, and judges it unless e is Pruned or Cut, or err is not nil. It returns err
	// joined with its own error.
	End(ctx context.Context, e *schedule.Ended, err error) error
}

// An Event may happen once in a schedule.
type Event[C comparable] struct {
	Name schedule.Event
	// Moves returns the ways in which the event can happen now. The conductor sets their Event.
	Moves func(ctx context.Context) ([]Move[C], error)
}

// Limits bound a schedule.
type Limits struct {
	Steps   int         // a longer schedule repeats itself, and is cut
	Endless func() bool // reports earlier that the schedule repeats itself; nil: only Steps counts
	Events  int         // maximum number of events; 0 means each may happen
	Pairs   bool        // two commands may be released together
	Pauses  bool        // a buyer may move in another buyer's pause; the subject supports Move.During
}

// A Conductor executes one schedule. It knows the progress of the schedule and the events that have
// happened.
type Conductor[C comparable] struct {
	limits   Limits
	subject  Subject[C]
	events   []Event[C] // in display order
	happened map[schedule.Event]bool
}

// New returns the conductor of one schedule, in which only the wanted events may happen. It panics if
// the subject lacks one of them: otherwise a search would report that nothing breaks under it.
func New[C comparable](s Subject[C], events []Event[C], wanted []schedule.Event, l Limits) *Conductor[C] {
	for _, name := range wanted {
		if !slices.ContainsFunc(events, func(e Event[C]) bool { return e.Name == name }) {
			panic(fmt.Sprintf("the subject has no event %q", name))
		}
	}
	unwanted := func(e Event[C]) bool { return !slices.Contains(wanted, e.Name) }
	return &Conductor[C]{limits: l, subject: s, events: slices.DeleteFunc(events, unwanted), happened: map[schedule.Event]bool{}}
}

// Happened returns the events that have happened.
func (c *Conductor[C]) Happened() map[schedule.Event]bool { return c.happened }

// Run executes the schedule that choose picks. See schedule.Runner.Run for its result.
func (c *Conductor[C]) Run(ctx context.Context, choose schedule.Chooser) (e schedule.Ended, err error) {
	if err = c.subject.Begin(ctx); err == nil {
		err = c.play(ctx, choose, &e)
	}
	err = c.subject.End(ctx, &e, err)
	return e, err
}

// play makes the moves.
func (c *Conductor[C]) play(ctx context.Context, choose schedule.Chooser, e *schedule.Ended) error {
	for depth := 0; ; depth++ {
		moves, err := c.moves(ctx)
		if err != nil {
			return err
		}
		if e.Cut = len(moves) > 0 && (depth == c.limits.Steps || c.limits.Endless != nil && c.limits.Endless()); e.Cut {
			return nil
		}
		p := &schedule.Point{Depth: depth}
		for _, m := range moves {
			p.Choices = append(p.Choices, m.Choice)
		}
		c.subject.Describe(ctx, p, moves)
		token, err := choose(p)
		if e.Pruned = token == "" && err == nil; e.Pruned || err != nil || len(moves) == 0 {
			return err
		}
		m, ok := c.pick(moves, token)
		if !ok {
			return fmt.Errorf("%w: step %d of the schedule is %s, which is not possible there; possible: %s", schedule.ErrDivergence, depth+1, token, schedule.List(p.Choices))
		}
		e.Tokens = append(e.Tokens, token)
		e.Concurrent = e.Concurrent || m.Pair
		if m.Event != "" {
			c.happened[m.Event] = true
		}
		if err := c.subject.Do(ctx, m); err != nil {
			return err
		}
	}
}

// moves returns the buyers' moves, then the events.
func (c *Conductor[C]) moves(ctx context.Context) (all []Move[C], err error) {
	all, err = c.subject.Moves(ctx)
	if err != nil || len(all) == 0 && c.subject.Over() {
		return nil, err
	}
	if c.limits.Events > 0 && len(c.happened) >= c.limits.Events {
		return all, nil
	}
	for _, e := range c.events {
		if c.happened[e.Name] {
			continue
		}
		ways, err := e.Moves(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range ways {
			m.Event = e.Name
			all = append(all, m)
		}
	}
	return all, nil
}

// pick finds the move of a token, including "1+2" if pairs are allowed.
func (c *Conductor[C]) pick(moves []Move[C], token string) (m Move[C], ok bool) {
	if before, during, pause := strings.Cut(token, "~"); pause {
		m, ok = c.pick(moves, before)
		m.During = during
		return m, ok && c.limits.Pauses
	}
	first, second, pair := strings.Cut(token, "+")
	at := slices.IndexFunc(moves, func(m Move[C]) bool { return m.Token == first })
	switch {
	case at < 0:
		return m, false
	case !pair:
		return moves[at], true
	}
	other, ok := c.pick(moves, second)
	if !ok || !c.limits.Pairs {
		return m, false
	}
	m = Move[C]{Command: moves[at].Command, Second: other.Command}
	m.Choice, ok = schedule.Together(moves[at].Choice, other.Choice)
	return m, ok
}
