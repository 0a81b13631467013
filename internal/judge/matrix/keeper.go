package matrix

import (
	"time"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verify"
)

// A Keeper writes the report files while the run goes on.
type Keeper struct {
	Files   []report.File
	Command string        // that writes them
	last    time.Time     // when it last wrote
	took    time.Duration // and how long that took
}

// keepShare is what part of a run's time the keeper may take: one of so many.
const keepShare = 20

// Keep writes what there is, as the report of a run that is not whole. Where writing
// takes long, not every cell is written at once. A file that cannot be written is told
// of at the end of the run.
func (k *Keeper) Keep(sofar verify.Report) {
	start := time.Now()
	if start.Sub(k.last) < keepShare*k.took {
		return
	}
	sofar.Finish()
	sofar.Unfinish("it is under way, or was killed")
	if d, err := sofar.Document(k.Command); err == nil {
		_ = report.SaveSoFar(k.Files, d)
	}
	k.last = time.Now()
	k.took = k.last.Sub(start)
}
