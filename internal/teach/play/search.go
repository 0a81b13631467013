package play

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// An Effort bounds a search.
type Effort struct {
	Budget time.Duration // 0: no bound
	Bound  int           // preemptions in one schedule, at most; negative: any number
}

// A Way leads from where the game stands to a goal.
type Way struct {
	Token    string   `json:"token"`  // of its first step; "": there is none
	Text     string   `json:"text"`   // of its first step
	Tokens   []string `json:"tokens"` // all of its steps
	Switches int      `json:"switches"`
	Events   int      `json:"events"`
	Complete bool     `json:"complete"` // nothing was left out: no other way is shorter, or none leads there
}

// Hint is the shortest way from here to the goal, see End.Reached: of the ways with the fewest
// steps one with the fewest switches between buyers. If no way leads there, the player has to take
// steps back.
func (g *Game) Hint(ctx context.Context, goal verdict.Verdict, e Effort) (Way, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return Way{}, ErrClosed
	}
	if g.at.End != nil {
		return Way{Complete: true}, nil
	}
	w, err := g.shortest(ctx, goal, e)
	for _, c := range g.at.Choices {
		if c.Token == w.Token {
			w.Text = c.Text
		}
	}
	return w, err
}

// shortest searches, and then stands again where it stood.
func (g *Game) shortest(ctx context.Context, goal verdict.Verdict, e Effort) (Way, error) {
	var found explore.Way
	err := g.aside(func() (err error) {
		found, err = g.searching(e, nil).Shortest(ctx, g.tokens, func(e *explore.Ended) bool { return reached(goal, e.Verdict, e.Foreign) })
		return err
	})
	w := Way{Tokens: append([]string{}, found.Tokens...), Switches: found.Switches, Events: found.Events, Complete: found.Complete}
	if len(w.Tokens) > 0 {
		w.Token = w.Tokens[0]
	}
	return w, err
}

// searching is the explorer with these bounds.
func (g *Game) searching(e Effort, progress func(explored, violations int)) *explore.Explorer {
	return g.explorer.With(func(c *explore.Config) { c.Bound, c.Budget, c.Progress = e.Bound, e.Budget, progress })
}

// aside does something with the explorer, and then stands again where it stood.
func (g *Game) aside(do func() error) error {
	over := g.at.End != nil
	g.leave()
	err := do()
	if over { // the position stays, and the next step begins a round
		return err
	}
	return errors.Join(err, g.begin(g.tokens))
}

// A Proof is what the explorer's search of every order came to.
type Proof struct {
	Extent     string          `json:"extent"`     // how much was explored, in words: "explored 92 of 92 schedules"
	Explored   int             `json:"explored"`   // schedules
	Violations int             `json:"violations"` // of them
	Complete   bool            `json:"complete"`   // there are no others
	Empty      bool            `json:"empty"`      // none of the events had anything to strike
	Stopped    bool            `json:"stopped"`    // the player has stopped it
	Holds      bool            `json:"holds"`      // none breaks, of all that there are: this is a proof
	Verdict    verdict.Verdict `json:"verdict"`    // of the shortest that breaks; "" where none was found
	Why        string          `json:"why"`        // the same
	Replay     string          `json:"replay"`     // the command that runs it again
	Text       string          `json:"text"`       // its diagram for a terminal
	Again      string          `json:"again"`      // the command that makes this search
	Seconds    float64         `json:"seconds"`
}

// Prove runs every order of this configuration, or as many as the effort allows: where the
// player says that nobody can break this, it answers. When ctx ends it says how far it came.
// The game stands where it stood.
func (g *Game) Prove(ctx context.Context, e Effort, progress func(explored, violations int)) (Proof, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return Proof{}, ErrClosed
	}
	var p Proof
	err := g.aside(func() error {
		x := g.searching(e, progress)
		result, err := x.Search(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		r := x.Report(result)
		p = Proof{
			Extent: r.Extent(), Explored: r.Explored, Violations: r.Violations, Complete: r.Complete, Empty: r.Empty(), Stopped: ctx.Err() != nil,
			Holds: r.Complete && r.Violations == 0 && !r.Empty(), Seconds: r.Seconds, Again: g.config.command(e.Bound),
		}
		if r.Witness == nil {
			return nil
		}
		var text strings.Builder
		p.Verdict, p.Why, p.Replay = r.Witness.Verdict, r.Witness.Why, r.Replay(r.Witness)
		err = r.Witness.Text(&text, g.config.Buyers)
		p.Text = text.String()
		return err
	})
	return p, err
}
