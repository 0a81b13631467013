package level

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

// hintBudget is the time for the search of a hint. On two cores the slowest level whose search
// ends takes 4 s.
const hintBudget = 30 * time.Second

// ProveBudget is the time for the search that answers a claim.
const ProveBudget = 2 * time.Minute

// A Player is a game that is under way, see play.Game.
type Player interface {
	Position() play.Position
	Hint(ctx context.Context, goal verdict.Verdict, e play.Effort) (play.Way, error)
}

// Advice is the third hint: what to do now. With neither Token nor Claim no way to the goal is
// left, or none was found in time, and the player takes a step back.
type Advice struct {
	Token string `json:"token"` // the next step
	Text  string `json:"text"`  // what it is
	Claim bool   `json:"claim"` // nothing leads to a break: the claim wins
	Lost  bool   `json:"lost"`  // nothing leads to the goal from here; else, without a Token, the search was not complete
	Over  bool   `json:"over"`  // the schedule has ended
}

// Next is computed from where the game stands: along the way of the par for as long as the
// player is on it, and else by a search from here.
func (l Level) Next(ctx context.Context, g Player) (Advice, error) {
	at := g.Position()
	if at.End != nil {
		return Advice{Claim: l.Nobody, Over: !l.Nobody}, nil
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
	return Advice{Claim: l.Nobody && way.Complete, Lost: !l.Nobody && way.Complete}, nil
}

// String is the advice in a sentence.
func (a Advice) String() string {
	switch {
	case a.Token != "":
		return "next: " + a.Token + ", " + a.Text
	case a.Claim:
		return "no order from here breaks it: claim that nobody can"
	case a.Over:
		return "the buyers are done: take a step back, or begin again"
	case a.Lost:
		return "from here no order leads to the goal: take a step back"
	}
	return "no way was found from here in the time for a hint"
}
