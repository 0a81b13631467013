package own

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/standstill"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A patience limits how long the explorer waits for the strategy's code. It expires only after many checks, so a slow
// machine alone does not end the wait.
type patience struct {
	until time.Time
	looks int
}

const (
	leastLooks = 500
	lookEvery  = 5 * time.Millisecond

	// maxSilence limits how long a buyer may compute between two commands. maxEnding limits how long code of the strategy
	// may run after its contexts have ended. Every strategy needs far less.
	maxSilence = 15 * time.Second
	maxEnding  = 5 * time.Second
	maxAgain   = 2 * time.Second // either limit, after a strategy has exceeded one
)

func (p *patience) isOver() bool {
	p.looks++
	return p.looks > leastLooks && time.Now().After(p.until)
}

// endings limits how long the strategy's code may take to end. After a schedule that exceeded a limit, the limits are
// shorter.
type endings struct {
	isStuck bool // after an earlier schedule, the strategy's code did not end
}

// patience returns a patience of the given duration, or of maxAgain if isStuck is true.
func (e *endings) patience(long time.Duration) patience {
	if e.isStuck {
		long = maxAgain
	}
	return patience{until: time.Now().Add(long)}
}

// await waits until no goroutine of a strategy is left. Such a goroutine could send commands during the next run. The
// error is a stuckError.
func (e *endings) await(g *standstill.Goroutines) error {
	for p := e.patience(maxEnding); !g.Ended(); time.Sleep(lookEvery / 100) {
		if !p.isOver() {
			continue
		}
		if where := g.Unended(); where != "" {
			return stuckError{schedule.ErrGoroutine, where}
		}
	}
	return nil
}

// A stuckError reports that code of the strategy still runs after the schedule, although every command is answered and
// every context has ended. Usually this is a bug of the strategy, see isBreak.
type stuckError struct {
	what  error
	where string
}

func (e stuckError) Error() string {
	return e.what.Error() + ": " + cmp.Or(e.where, "it is not known where")
}

// Unwrap also returns ErrHarness: the run proves nothing, unless isBreak blames the strategy.
func (e stuckError) Unwrap() []error { return []error{schedule.ErrHarness, e.what} }

// errSilent reports that a buyer has computed for longer than maxSilence.
var errSilent = fmt.Errorf("%w: a buyer sends no command and does not wait for another one", schedule.ErrHarness)

// isBreak reports whether the strategy is to blame for code that still runs after the schedule. It returns false if a
// process crashed, or if the search ended the schedule early.
func (r *run) isBreak(ctx context.Context, e *schedule.Ended, err error) bool {
	isWhole := err == nil && !e.Pruned && !e.Cut || errors.Is(err, errSilent)
	return isWhole && ctx.Err() == nil && !slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.crashed })
}

// endStuck judges a schedule after which code of the strategy still runs. No schedule can follow it.
func (r *run) endStuck(ctx context.Context, e *schedule.Ended, stuck stuckError) error {
	r.x.endings.isStuck = true
	r.x.attach(nil)
	e.Pruned, e.Cut, e.Final = false, false, true
	e.Verdict, e.Why = verdict.Stalled, stuck.Error()
	e.Steps, e.Outcomes = r.notes.Steps, r.buyers.outcomes()
	return r.leftover.reseat(ctx)
}
