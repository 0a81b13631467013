package verify

import (
	"strings"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// likelyCauses lists the causes in the code under test that have made an instrument fail so far.
const likelyCauses = "likely causes: a random key or name in a command, a lock or a transaction left on a connection, a goroutine that does not end"

// Failed returns the cell after a failure of its instrument: the strategy's behaviour is unknown,
// and the run is not green. err is the reason.
func (c Cell) Failed(err error) Cell {
	c.Verdict, c.OK = verdict.Inconclusive, false
	c.HarnessError = strings.Join(strings.Fields(err.Error()), " ")
	c.Reason = "nothing was judged: " + c.HarnessError
	c.Evidence = c.Reason + "; " + likelyCauses
	return c
}
