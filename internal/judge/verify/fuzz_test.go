package verify

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// FuzzRace: a shop's output contains no race, or one that is reported in one line.
func FuzzRace(f *testing.F) {
	f.Add(raceReport)
	f.Add("fatal error: concurrent map writes\n\ngoroutine 7 [running]:\n")
	f.Add("WARNING: DATA RACE\n at 0x:\n  a\n")
	f.Add("WARNING: DATA RACE\nRead at 0x0 by\n:\n  /")
	f.Fuzz(func(t *testing.T, report string) {
		c := Cell{Verdict: verdict.Holds, OK: true}
		c.Race(report)
		if raced := c.Verdict == verdict.Raced; raced == c.OK || raced != (c.Reason != "") {
			t.Errorf("%+v", c)
		}
		if strings.ContainsAny(c.Reason, "\n") {
			t.Errorf("more than a line: %q", c.Reason)
		}
	})
}
