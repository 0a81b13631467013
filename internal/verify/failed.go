package verify

import (
	"fmt"
	"strings"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/verdict"
)

// likelyCauses are what has made an instrument lose a cell so far, when the cause was in
// the code under test.
const likelyCauses = "likely causes: a random key or name in a command, a lock or a transaction left on a connection, a goroutine that does not end"

// FailedCell is a cell whose instrument failed: nothing is known of the strategy, and
// the run is not green. err is why.
func FailedCell(strategy string, f promise.Condition, promised verdict.Verdict, replay string, err error) Cell {
	c := Cell{
		Strategy: strategy, Fault: f, Promise: promised, Verdict: verdict.Inconclusive, Replay: replay,
		HarnessError: strings.Join(strings.Fields(err.Error()), " "),
	}
	c.Reason = "nothing was judged: " + c.HarnessError
	c.Evidence = c.Reason + "; " + likelyCauses
	return c
}

// exploreCommand is the exploration of a cell as a command of its own.
func exploreCommand(strategy string, f promise.Condition) string {
	line := "shop explore " + strategy
	if event, ok := eventOf[f]; ok {
		line += " --events " + string(event)
	}
	return line
}

// Line is the cell in one line, for a person who waits for the next.
func (c Cell) Line() string {
	text := fmt.Sprintf("%-15s %s under %s, %.1f s", c.word(), c.Strategy, c.Fault, float64(c.DurationMS)/1000)
	if !c.OK {
		text += fmt.Sprintf("; promised %s: %s", orNothing(c.Promise), c.Reason)
	}
	return text
}

// Sorted are the cells that are not as promised: those whose verdict contradicts,
// those that have shown nothing, and those whose instrument failed.
type Sorted struct{ Broken, Void, Failed []Cell }

// Sort finds them.
func (r Report) Sort() (s Sorted) {
	for _, c := range r.Cells {
		switch {
		case c.HarnessError != "":
			s.Failed = append(s.Failed, c)
		case c.Verdict == verdict.Inconclusive:
			s.Void = append(s.Void, c)
		case !c.OK:
			s.Broken = append(s.Broken, c)
		}
	}
	return s
}

// counts is how many cells came to what, in words.
func (r Report) counts() string {
	s := r.Sort()
	text := fmt.Sprintf("%d as promised, %d contradict, %d inconclusive", len(r.Cells)-len(s.Broken)-len(s.Void)-len(s.Failed), len(s.Broken), len(s.Void))
	if n := len(s.Failed); n > 0 {
		text += fmt.Sprintf(", %s of the harness", explore.Count(n, "error"))
	}
	return text
}
