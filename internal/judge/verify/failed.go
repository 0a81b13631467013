package verify

import (
	"strings"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// likelyCauses are what has made an instrument lose a cell so far, when the cause was in
// the code under test.
const likelyCauses = "likely causes: a random key or name in a command, a lock or a transaction left on a connection, a goroutine that does not end"

// Failed is the cell when its instrument failed: nothing is known of the strategy, and
// the run is not green. err is why.
func (c Cell) Failed(err error) Cell {
	c.Verdict, c.OK = verdict.Inconclusive, false
	c.HarnessError = strings.Join(strings.Fields(err.Error()), " ")
	c.Reason = "nothing was judged: " + c.HarnessError
	c.Evidence = c.Reason + "; " + likelyCauses
	return c
}
