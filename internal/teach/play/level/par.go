package level

import (
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/teach/play/results"
)

// A Par is what the best way to a level's goal costs, as the explorer has computed it: the
// fewest steps, and of the ways with so many one with the fewest switches.
type Par struct {
	Way      string // its steps, with spaces between; "" where the level is won by the claim
	Switches int    // from one buyer to another
	Orders   int    // where nobody can break it: how many there are, and all of them hold
	Complete bool   // no other way is shorter; else it is the shortest that the search has found
}

// Par is the level's, from the table that `make generate` writes.
func (l Level) Par() Par { return pars()[l.Name] }

// Steps is how many the way has.
func (p Par) Steps() int { return len(p.tokens()) }

func (p Par) tokens() []string { return strings.Fields(p.Way) }

// after is the step of the way that comes after these; false where they are not its beginning.
func (p Par) after(made []string) (token string, on bool) {
	way := p.tokens()
	if len(made) >= len(way) || !slices.Equal(made, way[:len(made)]) {
		return "", false
	}
	return way[len(made)], true
}

// String is the par in words.
func (p Par) String() string {
	switch {
	case p.Way == "":
		return "the claim"
	case !p.Complete:
		return results.Cost(p.Steps(), p.Switches) + " (best known)"
	}
	return results.Cost(p.Steps(), p.Switches)
}

// Shown is the par as a player sees it before the level is won: of an open level it would tell
// how to win.
func (l Level) Shown() string {
	if l.Open {
		return "?"
	}
	return l.Par().String()
}
