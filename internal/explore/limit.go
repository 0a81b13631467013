package explore

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A limit is the time limit for the search of a program. It includes the schedules, the replays that confirm a
// violation, the shortening of the violation, and every recovery in between. A budget of 0 is no limit.
type limit struct {
	begun   time.Time
	budget  time.Duration
	slowest time.Duration // the longest run so far
}

// errSpent is the cause with which a context ends when the budget is spent.
var errSpent = errors.New("the budget is spent")

// end returns the time at which the budget is spent; false if there is no budget.
func (l *limit) end() (time.Time, bool) { return l.begun.Add(l.budget), l.budget > 0 }

// bounded returns a context that also ends when the budget is spent.
func (l *limit) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, limited := l.end(); limited {
		return context.WithDeadlineCause(ctx, end, errSpent)
	}
	return context.WithCancel(ctx)
}

func (l *limit) took(d time.Duration) { l.slowest = max(l.slowest, d) }

// Shares of the budget that are reserved for confirming and shortening a violation.
const (
	shorteningShare = 4 // after a violation, reserve a quarter
	mostReserved    = 2 // reserve no more than half
	reservedRuns    = 2 // reserve the time of two runs, to confirm a violation of the last run
)

// searched reports whether the search must end, since the rest of the budget is reserved.
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

// tooShort returns the error for a budget that has ended during the first run.
func (l *limit) tooShort() error {
	return fmt.Errorf("--budget %s ended before the first schedule did; raise it, for example to %s", l.budget, (10 * l.budget).Round(time.Millisecond))
}
