package verify

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// raceReport reports a map that two goroutines write.
const raceReport = `==================
WARNING: DATA RACE
Write at 0x00c00009c030 by goroutine 85:
  runtime.mapassign_faststr()
      /usr/local/go/src/internal/runtime/maps/runtime_faststr.go:263 +0x0
  github.com/oversell/oversell/internal/lockstrategy/keyed.(*Map[go.shape.string]).Use()
      /home/me/oversell/internal/lockstrategy/keyed/keyed.go:44 +0x1c4

Previous write at 0x00c00009c030 by goroutine 86:
  runtime.mapassign_faststr()
      /usr/local/go/src/internal/runtime/maps/runtime_faststr.go:263 +0x0
  github.com/oversell/oversell/internal/lockstrategy/keyed.(*Map[go.shape.string]).Use()
      /home/me/oversell/internal/lockstrategy/keyed/keyed.go:44 +0x1c4

Goroutine 85 (running) created at:
  net/http.(*Server).Serve()
      /usr/local/go/src/net/http/server.go:3493 +0x8dc
==================
==================
WARNING: DATA RACE
Read at 0x00c00009c099 by goroutine 90:
`

// TestRace: a report of the detector or of the runtime contradicts the promise, with its first race
// as evidence. Other output does not.
func TestRace(t *testing.T) {
	for name, c := range map[string]struct{ report, want string }{
		"the detector's": {raceReport, "Write by goroutine 85: keyed.(*Map[go.shape.string]).Use() keyed/keyed.go:44; Previous write by goroutine 86: keyed.(*Map[go.shape.string]).Use() keyed/keyed.go:44"},
		"the runtime's":  {"fatal error: concurrent map writes\n\ngoroutine 7 [running]:\n", "concurrent map writes"},
		"a panic":        {"panic: nil map\n\ngoroutine 7 [running]:\n", ""},
		"nothing":        {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cell := Cell{Strategy: "mutex", Fault: promise.Rush, Promise: verdict.Holds, Verdict: verdict.Holds, OK: true}
			cell.Race(c.report)
			if c.want == "" {
				if !cell.OK || cell.Verdict != verdict.Holds {
					t.Errorf("%+v", cell)
				}
				return
			}
			if cell.OK || cell.Verdict != verdict.Raced || !strings.HasSuffix(cell.Reason, ": "+c.want) || strings.Contains(cell.DataRace, "Read at") {
				t.Errorf("%+v, want %q", cell, c.want)
			}
		})
	}
}
