package verify

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/load/rush"
)

// TestStarvedPlay: a time-out before the fault is inconclusive if the machine was busy. Every other error is a
// failure of the instrument.
func TestStarvedPlay(t *testing.T) {
	start := time.UnixMilli(0)
	delayed := func(ms int) pulse.Delays { return pulse.Delays{{From: start, To: time.UnixMilli(int64(ms))}} }
	down := fmt.Errorf("restock: %w", &rush.TimeoutError{Err: errors.New("503: the zookeeper is down")})
	for _, c := range []struct {
		name   string
		err    error
		delays pulse.Delays
		want   bool
	}{
		{"busy for most of the time", down, delayed(1500), true},
		{"busy for less than half", down, delayed(900), false},
		{"an idle machine", down, nil, false},
		{"another error", errors.New("no such table"), delayed(1500), false},
		{"the service cannot restock", &rush.RestockError{Err: errors.New("500")}, delayed(1500), false},
		{"no error", nil, delayed(1500), false},
	} {
		cell, is := Cell{Promise: verdict.Holds}.starved(c.err, c.delays, start, time.UnixMilli(2000))
		expect.Equal(t, is, c.want, c.name)
		if is && (cell.Verdict != verdict.Inconclusive || cell.HarnessError != "" || cell.OK ||
			!strings.Contains(cell.Reason, "this process got no processor for 1.5 of 2.0 s") || !strings.Contains(cell.Evidence, "the zookeeper is down")) {
			t.Errorf("%s: %+v", c.name, cell)
		}
	}
}
