package level

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

// hintBudget limits the search for a hint. On two cores, the slowest search that completes takes 4 s.
const hintBudget = 30 * time.Second

// ProveBudget limits the search that checks a player's claim.
const ProveBudget = 2 * time.Minute

// A Player is a game under way; play.Game is one.
type Player interface {
	Position() play.Position
	Hint(ctx context.Context, goal verdict.Verdict, e play.Effort) (play.Way, error)
}

// Advice is the third hint: the next step. If Token is "" and Claim is false, the search found no path to the
// goal, or none in time. The player should then take a step back.
type Advice struct {
	Token string `json:"token"` // the next step
	Text  string `json:"text"`  // the step in words
	Claim bool   `json:"claim"` // no path leads to a violation, so the claim wins
	Lost  bool   `json:"lost"`  // no path leads to the goal from here; if false and Token is "", the search was incomplete
	Over  bool   `json:"over"`  // the schedule has ended
}

// Next computes the advice for the current position. While the player follows the best path (Par), Next
// returns that path's next step. Otherwise it searches for a path from the position.
func (l Level) Next(ctx context.Context, g Player) (Advice, error) {
	at := g.Position()
	if at.End != nil {
		return Advice{Claim: l.Unbreakable, Over: !l.Unbreakable}, nil
	}
	if token, on := l.Par().after(at.Tokens); on {
		for _, c := range at.Choices {
			if c.Token == token {
				return Advice{Token: token, Text: c.Text}, nil
			}
		}
	}
	way, err := g.Hint(ctx, l.Goal, play.Effort{Budget: hintBudget, Bound: -1})
	if err != nil || way.Token != "" {
		return Advice{Token: way.Token, Text: way.Text}, err
	}
	return Advice{Claim: l.Unbreakable && way.Complete, Lost: !l.Unbreakable && way.Complete}, nil
}

// String returns the advice as a sentence.
func (a Advice) String() string {
	switch {
	case a.Token != "":
		return "next: " + a.Token + ", " + a.Text
	case a.Claim:
		return "no schedule from here breaks it: claim that it cannot be broken"
	case a.Over:
		return "the buyers are done: take a step back, or begin again"
	case a.Lost:
		return "from here no order leads to the goal: take a step back"
	}
	return "no way was found from here in the time for a hint"
}
