package play

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// An Effort limits a search.
type Effort struct {
	Budget time.Duration // 0: unlimited
	Bound  int           // maximum preemptions in one schedule; negative: unlimited
}

// A Way is a path from the current position to a goal.
type Way struct {
	Token    string   `json:"token"` // token of the first step; "": there is no path
	Text     string   `json:"text"`
	Tokens   []string `json:"tokens"`
	Switches int      `json:"switches"`
	Events   int      `json:"events"`
	Complete bool     `json:"complete"` // whether the search skipped nothing, so that no path is shorter or, without a Token, no path exists
}

// Hint returns the shortest path to the goal, a verdict as in End.Reached. Among the paths with the fewest
// steps, it selects one with the fewest switches between buyers. If there is no path, the player has to take
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

// shortest searches, and then restores the position.
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

// searching returns the explorer with these limits.
func (g *Game) searching(e Effort, progress func(explored, violations int)) *explore.Explorer {
	return g.explorer.With(func(c *explore.Config) { c.Bound, c.Budget, c.Progress = e.Bound, e.Budget, progress })
}

// aside ends the round (the current run of the explorer), calls the function `do`, and then restores the
// position.
func (g *Game) aside(do func() error) error {
	over := g.at.End != nil
	g.leave()
	err := do()
	if over { // the game keeps its last position, and the next step begins a round
		return err
	}
	return errors.Join(err, g.begin(g.tokens))
}

// A Proof is the result of the explorer's search of every schedule.
type Proof struct {
	Extent     string          `json:"extent"`     // the extent of the search: "explored 92 of 92 schedules"
	Explored   int             `json:"explored"`   // number of schedules
	Violations int             `json:"violations"` // number of violating schedules
	Complete   bool            `json:"complete"`   // whether the search is complete
	Empty      bool            `json:"empty"`      // whether no event, such as a crash, took effect in any schedule
	Stopped    bool            `json:"stopped"`    // whether the player has stopped the search
	Holds      bool            `json:"holds"`      // complete and without violations, which is a proof
	Verdict    verdict.Verdict `json:"verdict"`    // verdict of the shortest violation; "" if there is none
	Why        string          `json:"why"`        // reason of the shortest violation
	Replay     string          `json:"replay"`     // the command that replays this violation
	Text       string          `json:"text"`       // the violation's sequence diagram for a terminal
	Again      string          `json:"again"`      // the command that repeats this search
	Seconds    float64         `json:"seconds"`
}

// Prove checks the player's claim that the code cannot be broken: it runs every schedule of this configuration,
// within the limits of e. When ctx ends, it reports the result so far. The game keeps its position.
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
