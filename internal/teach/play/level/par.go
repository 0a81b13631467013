package level

import (
	_ "embed"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"

	"github.com/oversell/oversell/internal/teach/play/results"
)

// A Par is the best path to a level's goal, as computed by the explorer. It has the fewest steps and, among
// such paths, the fewest switches between buyers.
type Par struct {
	Way      string // steps of the path, separated by spaces; "" if no schedule breaks the level's code
	Switches int    // switches from one buyer to another
	Orders   int    // if Way is "": the number of schedules
	Complete bool   // whether the search was complete, so that no path is shorter
}

// pars has a line for each level. `make generate` writes it.
//
//go:embed par.csv
var pars string

// Par returns the level's par. It is zero if par.csv has no line for the level.
func (l Level) Par() (p Par) {
	rows, err := csv.NewReader(strings.NewReader(pars)).ReadAll()
	if err != nil {
		panic("par.csv: " + err.Error()) // the file is embedded, and tests read it
	}
	for _, row := range rows {
		if row[0] == l.Name {
			p.Way, p.Complete = row[1], row[4] == "true"
			p.Switches, _ = strconv.Atoi(row[2]) // a test checks the table
			p.Orders, _ = strconv.Atoi(row[3])
		}
	}
	return p
}

// Steps returns the number of steps of the path.
func (p Par) Steps() int { return len(p.tokens()) }

func (p Par) tokens() []string { return strings.Fields(p.Way) }

// after returns the path's next step after the steps in `made`. The result `on` is false if the path does not
// begin with these steps.
func (p Par) after(made []string) (token string, on bool) {
	way := p.tokens()
	if len(made) >= len(way) || !slices.Equal(made, way[:len(made)]) {
		return "", false
	}
	return way[len(made)], true
}

// String describes the par in words.
func (p Par) String() string {
	switch {
	case p.Way == "":
		return "the claim"
	case !p.Complete:
		return results.Cost(p.Steps(), p.Switches) + " (best known)"
	}
	return results.Cost(p.Steps(), p.Switches)
}

// Shown returns the par as a player sees it before winning. For an open level it hides the par, which would
// tell whether the code can be broken.
func (l Level) Shown() string {
	if l.Open {
		return "?"
	}
	return l.Par().String()
}
