package explore

import (
	"context"
	"errors"
	"fmt"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
)

// courses is the maximum number of runs of a schedule with a concurrent pair (two commands sent to one server at once).
// The server may execute the pair in another way each time.
const courses = 10

// Replay runs exactly the schedule of a replay string, which must have the strategy, buyers and stock of this explorer.
// With concurrent pairs, Replay repeats the schedule until the server executes them as the string says. If the explorer
// loses control of a program's run, the run is void and repeated. After five void runs the error is schedule.Void.
func (x *Explorer) Replay(ctx context.Context, line string) (*Witness, error) {
	s, err := ParseSchedule(line)
	if err != nil {
		return nil, err
	}
	if err := x.config.FitsLine(s); err != nil {
		return nil, err
	}
	w, err := x.follow(ctx, s.Tokens)
	for tries := 1; s.Concurrent() && errors.Is(err, schedule.ErrDivergence) && tries < courses; tries++ {
		w, err = x.follow(ctx, s.Tokens)
	}
	for tries := 1; isVoid(err) && ctx.Err() == nil && tries < shownTries; tries++ {
		w, err = x.follow(ctx, s.Tokens)
	}
	if errors.Is(err, schedule.ErrDivergence) {
		err = x.mode.hint(err)
	}
	return w, err
}

// follow runs a schedule and returns its steps as a witness. If a move in a pause ("1~2") came too late, follow runs
// again.
func (x *Explorer) follow(ctx context.Context, tokens []string) (w *Witness, err error) {
	for range pauseTries {
		w, err = x.followOnce(ctx, tokens)
		if v, _ := schedule.AsVoid(err); !v.Missed || ctx.Err() != nil {
			break
		}
	}
	return w, err
}

func (x *Explorer) followOnce(ctx context.Context, tokens []string) (*Witness, error) {
	var made []witness.Choice
	e, err := x.runner.Run(ctx, func(p *schedule.Point) (string, error) {
		if p.AtEnd() {
			return schedule.Judge, nil
		}
		if p.Depth == len(tokens) {
			return "", fmt.Errorf("%w: the replay string ends after step %d, before the buyers end; possible next steps: %s", schedule.ErrDivergence, len(tokens), schedule.List(p.Choices))
		}
		if c, found := schedule.Find(p.Choices, tokens[p.Depth]); found {
			made = append(made, chosen(c))
		}
		return tokens[p.Depth], nil
	}, true)
	if err != nil {
		return nil, err
	}
	if e.Cut {
		return nil, fmt.Errorf("%w: it has too many steps", schedule.ErrDivergence)
	}
	if len(e.Tokens) != len(tokens) {
		return nil, fmt.Errorf("%w: the buyers are done after step %d, and the replay string has %d", schedule.ErrDivergence, len(e.Tokens), len(tokens))
	}
	w := x.witness(tokens, e)
	w.Choices = made
	return w, nil
}

func (x *Explorer) witness(tokens []string, e schedule.Ended) *Witness {
	return &Witness{
		Schedule: x.mode.schedule(tokens).String(), Steps: e.Steps, Verdict: e.Verdict, Why: e.Why, Outcomes: e.Outcomes,
		Program: x.config.Program, Watch: e.Watch, Findings: e.Findings, Folded: e.Folded,
	}
}

// chosen returns the parts of a choice by which a saved schedule can find the choice again.
func chosen(c schedule.Choice) witness.Choice {
	return witness.Choice{Buyer: c.Buyer, Token: c.Token, Name: c.Name, Server: c.Touches}
}

// FitsLine returns why an explorer of this configuration cannot run a replay string, as one line; nil if it can.
func (c Config) FitsLine(s Schedule) error {
	m := c.mode()
	if s.Strategy != m.name() || s.Buyers != c.Buyers || !m.stocked(s) || s.Shared != c.Shared || s.Overlap != c.Split {
		return fmt.Errorf("the replay string belongs to %s, not to %s", s.Head(), m.schedule(nil).Head())
	}
	return nil
}
