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

// A patience limits the wait for the strategy's code to end. It expires only after many checks, so a
// slow machine alone does not end the wait.
type patience struct {
	until time.Time
	looks int
}

const (
	leastLooks = 500
	lookEvery  = 5 * time.Millisecond

	// maxSilence limits the time that a buyer computes between two commands. maxEnding limits the time
	// that code of the strategy takes to end after its contexts have ended. Every strategy needs far
	// less.
	maxSilence = 15 * time.Second
	maxEnding  = 5 * time.Second
	maxAgain   = 2 * time.Second // limit for a strategy that has already exceeded one of the two limits
)

func (p *patience) isOver() bool {
	p.looks++
	return p.looks > leastLooks && time.Now().After(p.until)
}

// endings limits the time that the strategy's code may take to end. Once a schedule has exceeded the
// limit, later limits are shorter.
type endings struct {
	isStuck bool // the strategy's code did not end after an earlier schedule
}

// patience returns a patience of the given duration, or of maxAgain if isStuck is true.
func (e *endings) patience(long time.Duration) patience {
	if e.isStuck {
		long = maxAgain
	}
	return patience{until: time.Now().Add(long)}
}

// await waits until no goroutine of a strategy is left, since such a goroutine could send commands
// during the next run. The error is a stuckError.
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

// A stuckError reports code of the strategy that still runs after the schedule, although every command
// is answered and every context has ended. Usually the strategy is wrong, see isBreak.
type stuckError struct {
	what  error
	where string
}

func (e stuckError) Error() string {
	return e.what.Error() + ": " + cmp.Or(e.where, "it is not known where")
}

// Unwrap also returns ErrHarness: unless isBreak says that the strategy is wrong, the run proves
// nothing.
func (e stuckError) Unwrap() []error { return []error{schedule.ErrHarness, e.what} }

// errSilent reports that a buyer has computed for longer than maxSilence.
var errSilent = fmt.Errorf("%w: a buyer sends no command and does not wait for another one", schedule.ErrHarness)

// isBreak reports whether code that still runs after the schedule is an error of the strategy. It
// returns false if a process crashed, or if the search cut the schedule short.
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
