// Package conduct executes one schedule. In each step, it asks for the possible moves, lets the search choose one, and
// makes it. It stops when no move is left, or after a maximum number of steps.
//
// A Subject represents the buyers. Package own implements it for strategies of the catalogue, whose commands wait at
// gates in this process. Package target implements it for a program in any language, with gates on the program's
// connections. Only this package contains the loop, the limits and the record of events.
package conduct

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Move is a possible next step. C is the subject's type for commands.
type Move[C comparable] struct {
	schedule.Choice
	Command C      // the command to release; for a timeout, the command whose wait ends; zero for other moves
	Second  C      // for two commands sent to one server at once: release it before Command is answered
	During  string // token of another buyer's move, to be made during the pause that follows; "" if none
	Text    string // for an event or a request: its description for the user
	// Make makes the move without waiting for its effects. It is nil if the move releases Command.
	Make func(ctx context.Context) error
}

// A Subject represents the buyers of one schedule. Only one goroutine may use it.
type Subject[C comparable] interface {
	// Begin starts the buyers, and returns when every buyer is blocked, done, or waits at its gate.
	Begin(ctx context.Context) error
	// Moves returns the possible next steps, sorted by buyer. It returns none if every buyer is blocked, and every timer
	// that fires by itself, without being a step, has fired.
	Moves(ctx context.Context) ([]Move[C], error)
	// Over is called when there are no moves. It reports whether the run is over: no event can change anything any more.
	Over() bool
	// Describe adds the subject's knowledge about point p to it.
	Describe(ctx context.Context, p *schedule.Point, moves []Move[C])
	// Do makes a move, and returns when every buyer is blocked, done, or waits at its gate.
	Do(ctx context.Context, m Move[C]) error
	// End ends the run. It judges the result, unless e is Pruned or Cut, or err is not nil. It returns err joined with its
	// own error.
	End(ctx context.Context, e *schedule.Ended, err error) error
}

// An Event may happen once in a schedule.
type Event[C comparable] struct {
	Name schedule.Event
	// Moves returns the ways in which the event can happen now. The caller sets Move.Event in each.
	Moves func(ctx context.Context) ([]Move[C], error)
}

// Limits bound a schedule.
type Limits struct {
	Steps   int         // maximum number of steps; the conductor cuts a longer schedule, which only repeats itself
	Endless func() bool // reports that the buyers already repeat the same commands, so the schedule can be cut; nil: only Steps counts
	Events  int         // maximum number of events; 0: no limit
	Pairs   bool        // a step may release two commands together
	Pauses  bool        // a buyer may move while another buyer pauses, see Move.During
}

// A Conductor executes one schedule.
type Conductor[C comparable] struct {
	limits   Limits
	subject  Subject[C]
	events   []Event[C] // in display order
	happened map[schedule.Event]bool
}

// New returns the conductor of one schedule, in which only the events in `wanted` may happen. It panics if the subject
// does not implement one of them, because a search would then report that nothing breaks under that event.
func New[C comparable](s Subject[C], events []Event[C], wanted []schedule.Event, l Limits) *Conductor[C] {
	for _, name := range wanted {
		if !slices.ContainsFunc(events, func(e Event[C]) bool { return e.Name == name }) {
			panic(fmt.Sprintf("the subject has no event %q", name))
		}
	}
	unwanted := func(e Event[C]) bool { return !slices.Contains(wanted, e.Name) }
	return &Conductor[C]{limits: l, subject: s, events: slices.DeleteFunc(events, unwanted), happened: map[schedule.Event]bool{}}
}

// Happened returns the set of events that have happened.
func (c *Conductor[C]) Happened() map[schedule.Event]bool { return c.happened }

// Run executes the schedule that choose selects, step by step. Its result is that of schedule.Runner.Run.
func (c *Conductor[C]) Run(ctx context.Context, choose schedule.Chooser) (e schedule.Ended, err error) {
	if err = c.subject.Begin(ctx); err == nil {
		err = c.play(ctx, choose, &e)
	}
	err = c.subject.End(ctx, &e, err)
	return e, err
}

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

// pick finds the move for a token. Where the limits permit, it also finds pairs such as "1+2" and moves in pauses
// ("1~2").
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
