package explore

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A limit is the time limit for the whole search of a program. The limit includes replaying and shortening a violation,
// and restoring the initial state before each run. A budget of 0 means no limit.
type limit struct {
	begun   time.Time
	budget  time.Duration
	slowest time.Duration // the longest run so far
}

// errSpent is the cause of a context that ended because the budget was spent.
var errSpent = errors.New("the budget is spent")

// end returns the time at which the budget is spent, and whether there is a budget.
func (l *limit) end() (time.Time, bool) { return l.begun.Add(l.budget), l.budget > 0 }

// bounded returns a context that ends with ctx, or when the budget is spent.
func (l *limit) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, limited := l.end(); limited {
		return context.WithDeadlineCause(ctx, end, errSpent)
	}
	return context.WithCancel(ctx)
}

func (l *limit) took(d time.Duration) { l.slowest = max(l.slowest, d) }

// Shares of the budget that are reserved for confirming and shortening a violation.
const (
	shorteningShare = 4 // after a violation, reserve a quarter of the budget to shorten its schedule
	mostReserved    = 2 // reserve at most half of the budget
	reservedRuns    = 2 // reserve the time of two runs, to confirm a violation of the last run
)

// searched reports whether the search must end, since the rest of the budget is reserved for later.
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
