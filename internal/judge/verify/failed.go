package verify

import (
	"errors"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/load/rush"
)

// likelyCauses lists mistakes in the code under test that have made a test fail without a verdict so far.
const likelyCauses = "likely causes: a random key or name in a command, a lock or a transaction left on a connection, a goroutine that does not end"

// starved reports whether a test failed only because the machine was busy: a time limit ended while this
// process mostly had no processor. It returns the cell (strategy under one condition) as inconclusive. The
// servers share the machine and the priority, so they had no processor either. On an idle machine, the
// strategy may have caused the same error, so the caller reports a failed test.
func (c Cell) starved(err error, delays pulse.Delays, start, end time.Time) (_ Cell, is bool) {
	busy := delays.Mostly(start, end)
	if busy == "" || !errors.As(err, new(*rush.TimeoutError)) {
		return c, false
	}
	c.Verdict, c.OK = verdict.Inconclusive, false
	c.Reason = busy + ", and a time limit ended before the fault: " + strings.Join(strings.Fields(err.Error()), " ")
	c.Evidence, c.disturbance = c.evidence(), c.Reason
	return c, true
}

// Failed returns the cell after its test itself failed with err. The strategy's behaviour is unknown, so the
// run does not pass.
func (c Cell) Failed(err error) Cell {
	c.Verdict, c.OK = verdict.Inconclusive, false
	c.HarnessError = strings.Join(strings.Fields(err.Error()), " ")
	c.Reason = "nothing was judged: " + c.HarnessError
	c.Evidence = c.Reason + "; " + likelyCauses
	return c
}
