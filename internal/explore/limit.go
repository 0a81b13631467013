package explore

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A limit is the time of a search for a program under test. It covers the schedules, the replays that
// confirm a violation, its shortening, and every recovery in between. Without a budget it has no end.
type limit struct {
	begun   time.Time
	budget  time.Duration
	slowest time.Duration // the longest run so far
}

// errSpent is the cause of a context whose budget is spent.
var errSpent = errors.New("the budget is spent")

// end returns when the budget is spent; false if there is none.
func (l *limit) end() (time.Time, bool) { return l.begun.Add(l.budget), l.budget > 0 }

// bounded returns a context that ends with the budget, too.
func (l *limit) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, limited := l.end(); limited {
		return context.WithDeadlineCause(ctx, end, errSpent)
	}
	return context.WithCancel(ctx)
}

// took records the duration of a run and its recovery.
func (l *limit) took(d time.Duration) { l.slowest = max(l.slowest, d) }

// Parts of the budget that the search leaves for what follows.
const (
	shorteningShare = 4 // a quarter, once a violation is known
	mostReserved    = 2 // at most half
	reservedRuns    = 2 // enough for that many runs: to confirm a violation that the last run finds
)

// searched reports whether the search must leave the rest of the budget for confirming and shortening.
func (l *limit) searched(broken bool) bool {
	if l.budget <= 0 {
		return false
	}
	reserve := min(reservedRuns*l.slowest, l.budget/mostReserved)
	if broken {
		reserve = max(reserve, l.budget/shorteningShare)
	}
	return time.Since(l.begun) > l.budget-reserve
}

// tooShort is the error for a budget that has ended within the first run.
func (l *limit) tooShort() error {
	return fmt.Errorf("--budget %s ended before the first schedule did; raise it, for example to %s", l.budget, (10 * l.budget).Round(time.Millisecond))
}
