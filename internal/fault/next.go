package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/purchase"
)

// others sends buyers to shop B while the holder (the buyer that the fault has stopped) has the lock. It
// returns when one of them has bought a unit or waits for the row that the holder has locked. If the lock
// works, no buyer gets in, so others returns after the duration `longest` at the latest.
func (t *Testbed) others(ctx context.Context, _, longest time.Duration) {
	for i := range 3 {
		t.buyers.send(ctx, t.B, fmt.Sprintf("next-%d", i))
	}
	if !locks(t.Log) {
		longest = min(longest, time.Second) // without locks, no lease can expire and let a buyer in later
	}
	waiting, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	_, in := t.Log.Wait(waiting, func(e history.Event) bool {
		return isNext(e) && (e.Kind == history.Acquired || e.Outcome == string(purchase.Sold))
	})
	if !in {
		return
	}
	settled, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for settled.Err() == nil && !nextSold(t.Log) && !t.Servers.rowIsAwaited(settled) {
		time.Sleep(5 * time.Millisecond)
	}
}

// overlap stops a buyer of shop A at its COMMIT and lets others buy at B meanwhile. A fault calls it after a
// recovery: the lock must exclude the others again. The proof says whether the buyer reached its COMMIT.
func overlap(ctx context.Context, t *Testbed) (proof string, _ error) {
	const late = "late-holder"
	if err := stop(ctx, t, &t.A, late, failpoint.Commit); err != nil {
		return "", err
	}
	e, _ := seen(ctx, t, t.Times.Wait, late, history.Holding, history.Answered)
	if e.Kind != history.Holding {
		return "afterwards, no buyer reached its COMMIT", nil
	}
	t.others(ctx, 0, t.Times.within())
	return "afterwards, others came while a buyer was stopped at its COMMIT", t.goOn(ctx, &t.A, late)
}

func isNext(e history.Event) bool { return strings.HasPrefix(e.Purchaser, "next-") }

func locks(log *history.Log) bool {
	return slices.ContainsFunc(log.Events(), func(e history.Event) bool { return e.Kind == history.Acquired })
}

// nextSold reports whether one of the buyers that the method others has sent has bought a unit.
func nextSold(log *history.Log) bool {
	return slices.ContainsFunc(log.Events(), func(e history.Event) bool { return isNext(e) && e.Outcome == string(purchase.Sold) })
}

// rowIsAwaited reports whether a statement waits for a row lock in the database.
func (s *sqlServer) rowIsAwaited(ctx context.Context) bool {
	db := s.engine.Admin.WithContext(ctx)
	var waits struct{ Value int }
	err := db.Raw(dialect.Of(db).RowWaits).Scan(&waits).Error
	return err == nil && waits.Value > 0
}
