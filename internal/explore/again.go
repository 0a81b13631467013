package explore

import (
	"context"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
)

// A Comparison is the result of running a saved schedule of a program under test again. Either StillBreaks or
// NoLongerBreaks is true, or Other is set.
type Comparison struct {
	Saved   *Saved
	Witness *Witness  // of this run; nil if Other is set
	Other   *OtherWay // how the program deviates from the saved schedule; nil if it does not
}

// StillBreaks reports whether the same schedule still ends in a violation, even with another verdict.
func (c Comparison) StillBreaks() bool { return c.Other == nil && c.Witness.Broken() }

// NoLongerBreaks reports whether the same schedule now ends without a violation.
func (c Comparison) NoLongerBreaks() bool { return c.Other == nil && !c.Witness.Broken() }

// String returns a sentence without its full stop.
func (c Comparison) String() string {
	switch {
	case c.Other != nil:
		return c.Other.String()
	case c.NoLongerBreaks():
		return "the same schedule no longer breaks"
	case c.Witness.Verdict != c.Saved.Verdict:
		return fmt.Sprintf("still breaks, and is now %s instead of %s: %s", c.Witness.Verdict, c.Saved.Verdict, c.Witness.Why)
	}
	return fmt.Sprintf("still breaks: %s: %s", c.Witness.Verdict, c.Witness.Why)
}

// Again runs a saved schedule and compares the results. For each saved step, it takes the same buyer's command with the
// same name. If the explorer loses control, the run is void: Again repeats it, and returns schedule.Void after the
// fifth void run. The server may execute two commands sent together (a concurrent pair) in another way than saved. Then
// Again repeats the run, up to 10 runs in total.
func (x *Explorer) Again(ctx context.Context, s *Saved) (Comparison, error) {
	if err := x.config.Fits(s); err != nil {
		return Comparison{}, err
	}
	voids, tries := 0, 1
	if slices.ContainsFunc(s.Steps, func(c witness.Choice) bool { return schedule.Concurrent(c.Token) }) {
		tries = courses
	}
	for {
		c, err := x.compare(ctx, s)
		switch {
		case isVoid(err):
			if voids++; voids == shownTries || ctx.Err() != nil {
				return c, err
			}
		case err != nil:
			return c, err
		default:
			if tries--; c.Other == nil || tries == 0 {
				return c, nil
			}
		}
	}
}

// Fits returns why an explorer of this configuration cannot run a saved schedule, as one line; nil if it can.
func (c Config) Fits(s *Saved) error {
	switch {
	case s.Buyers != c.Buyers || s.Shared != c.Shared || s.Overlap != c.Split:
		return fmt.Errorf("the saved schedule belongs to %s, not to %s", describe(s.Program, s.Buyers, s.Shared, s.Overlap), describe(c.mode().name(), c.Buyers, c.Shared, c.Split))
	case s.Program != c.Program:
		return fmt.Errorf("the saved schedule belongs to the program %s, not to %s; write `name: %s` in the file of --app", s.Program, c.mode().name(), s.Program)
	}
	for _, e := range s.Events {
		if !slices.Contains(c.Events, e) {
			return fmt.Errorf("the saved schedule needs the event %s; add --events %s", e, e)
		}
	}
	return nil
}

func describe(program string, buyers int, shared, overlap bool) string {
	text := fmt.Sprintf("%s with %d buyers", program, buyers)
	if shared {
		text += " in one process"
	}
	if overlap {
		text += " and --overlap"
	}
	return text
}

func (x *Explorer) compare(ctx context.Context, s *Saved) (Comparison, error) {
	var made []witness.Choice
	var tokens []string
	var other *OtherWay
	e, err := x.runner.Run(ctx, func(p *schedule.Point) (string, error) {
		var step witness.Choice // stays empty after the last saved step
		if p.Depth < len(s.Steps) {
			step = s.Steps[p.Depth]
		}
		c, found := find(p.Choices, step)
		switch {
		case p.AtEnd() && p.Depth >= len(s.Steps):
			return schedule.Judge, nil
		case !found:
			other = elsewhere(p.Depth, p.Choices, step)
			return "", nil
		}
		made, tokens = append(made, chosen(c)), append(tokens, c.Token)
		return c.Token, nil
	}, true)
	switch {
	case err != nil:
		return Comparison{}, err
	case other != nil:
		return Comparison{Saved: s, Other: other}, nil
	case e.Cut:
		return Comparison{}, fmt.Errorf("%w: it has too many steps", schedule.ErrDivergence)
	case len(made) < len(s.Steps): // the run ended before the last saved step
		return Comparison{Saved: s, Other: elsewhere(len(made), nil, s.Steps[len(made)])}, nil
	}
	w := x.witness(tokens, e)
	w.Choices = made
	return Comparison{Saved: s, Witness: w}, nil
}

// Resembling runs a saved schedule on a changed program, as similarly as possible. The buyers move in the saved order.
// If a buyer sends a new command instead of the saved one, the new one runs. A buyer that is blocked or done is
// skipped. After the last saved step, the buyers finish one after the other. The result `matched` counts the saved
// steps whose own command ran. A void run is repeated, as in Again.
func (x *Explorer) Resembling(ctx context.Context, s *Saved) (w *Witness, matched int, err error) {
	if err := x.config.Fits(s); err != nil {
		return nil, 0, err
	}
	for range shownTries {
		if w, matched, err = x.resembling(ctx, s); !isVoid(err) || ctx.Err() != nil {
			break
		}
	}
	return w, matched, err
}

// resembling does the work of Resembling, without repetitions.
func (x *Explorer) resembling(ctx context.Context, s *Saved) (*Witness, int, error) {
	turns, matched := &turns{steps: s.Steps}, 0
	var made []witness.Choice
	var tokens []string
	e, err := x.runner.Run(ctx, func(p *schedule.Point) (string, error) {
		if p.AtEnd() {
			return schedule.Judge, nil
		}
		c, same := turns.next(p)
		if same {
			matched++
		}
		made, tokens = append(made, chosen(c)), append(tokens, c.Token)
		return c.Token, nil
	}, true)
	if err != nil {
		return nil, 0, err
	}
	if e.Cut {
		return nil, 0, fmt.Errorf("%w: it has too many steps", schedule.ErrDivergence)
	}
	w := x.witness(tokens, e)
	w.Choices = made
	return w, matched, nil
}

// turns is a position in the steps of a saved schedule, for Resembling.
type turns struct {
	steps []witness.Choice
	at    int
}

// next returns the choice for the next step. If that is the saved step, `same` is true. The point p must have a choice.
func (t *turns) next(p *schedule.Point) (_ schedule.Choice, same bool) {
	for ; t.at < len(t.steps); t.at++ {
		step := t.steps[t.at]
		c, found := find(p.Choices, step)
		i := slices.IndexFunc(p.Choices, func(c schedule.Choice) bool { return c.Command() && !c.Background && c.Buyer == step.Buyer })
		if found {
			t.at++
			return c, true
		}
		if i >= 0 && !t.comesLater(p.Choices[i]) {
			return p.Choices[i], false // the program did not send this command when the schedule was saved
		}
	}
	if c, found := schedule.Find(p.Choices, p.FirstMove()); found {
		return c, false
	}
	return p.Choices[0], false
}

// comesLater reports whether a later saved step of the same buyer has this command.
func (t *turns) comesLater(c schedule.Choice) bool {
	name := withoutNames(c.Name)
	return slices.ContainsFunc(t.steps[t.at:], func(s witness.Choice) bool { return c.Buyer == s.Buyer && withoutNames(s.Name) == name })
}
