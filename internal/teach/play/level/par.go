package level

import (
	_ "embed"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"

	"github.com/oversell/oversell/internal/teach/play/results"
)

// A Par is what the best way to a level's goal costs, as the explorer has computed it: the
// fewest steps, and the fewest switches among the ways with that many steps.
type Par struct {
	Way      string // its steps, separated by spaces; "" where the claim wins the level
	Switches int    // from one buyer to another
	Orders   int    // schedules of a level that cannot be broken
	Complete bool   // no other way is shorter; else it is the shortest that the search has found
}

//go:embed par.csv
var pars string

// columns of par.csv, which `make generate` writes.
const columns = "level,way,switches,orders,complete"

// Par looks up the level's par; it is zero for a level that par.csv lacks.
func (l Level) Par() (p Par) {
	rows, err := csv.NewReader(strings.NewReader(pars)).ReadAll()
	if err != nil {
		panic("par.csv: " + err.Error()) // it is part of this program, and its tests read it
	}
	for _, row := range rows {
		if row[0] == l.Name {
			p.Way, p.Complete = row[1], row[4] == "true"
			p.Switches, _ = strconv.Atoi(row[2]) // the test of the table compares them
			p.Orders, _ = strconv.Atoi(row[3])
		}
	}
	return p
}

// Steps counts those of the way.
func (p Par) Steps() int { return len(p.tokens()) }

func (p Par) tokens() []string { return strings.Fields(p.Way) }

// after returns the step of the way that follows these; false unless they are its beginning.
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

// Shown is the par as a player sees it before the level is won. The par of an open level would
// tell how to win.
func (l Level) Shown() string {
	if l.Open {
		return "?"
	}
	return l.Par().String()
}
