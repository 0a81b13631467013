package verify

import (
	"time"

	"github.com/oversell/oversell/internal/judge/report"
)

// A Keeper writes the report files during the run, so that an interrupted run leaves a report.
type Keeper struct {
	Files   []report.File
	Command string        // the command of the run
	last    time.Time     // time of the last write
	took    time.Duration // duration of the last write
}

// keepShare limits the time for writing to 1/keepShare of the run's time.
const keepShare = 20

// Keep writes the report so far, marked as incomplete. Call it after each cell (strategy under one condition).
// If writing takes long, Keep skips some calls. Write errors are reported at the end of the run.
func (k *Keeper) Keep(sofar Report) {
	start := time.Now()
	if start.Sub(k.last) < keepShare*k.took {
		return
	}
	sofar.Finish()
	sofar.Unfinish("it is under way, or was killed")
	_ = report.SaveSoFar(k.Files, sofar.Document(k.Command))
	k.last = time.Now()
	k.took = k.last.Sub(start)
}
