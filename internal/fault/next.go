package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/purchase"
)

// sendNext sends buyers to B while the holder is stopped, and waits until one of them
// is in: it has sold, or it waits for the row that the holder has locked. It waits
// no longer than timeout: under a lock that holds, nobody gets in.
func sendNext(ctx context.Context, t *Testbed, timeout time.Duration) {
	for i := range 3 {
		t.buyers.send(ctx, t.B, fmt.Sprintf("next-%d", i))
	}
	if !locks(t.Log) {
		timeout = min(timeout, time.Second) // no lease expires there that could let somebody in later
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
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

func isNext(e history.Event) bool { return strings.HasPrefix(e.Purchaser, "next-") }

// locks reports whether the strategy has published an event of a lock.
func locks(log *history.Log) bool {
	return slices.ContainsFunc(log.Events(), func(e history.Event) bool { return e.Kind == history.Acquired })
}

// nextSold reports whether one of the next buyers was sold a unit.
func nextSold(log *history.Log) bool {
	return slices.ContainsFunc(log.Events(), func(e history.Event) bool { return isNext(e) && e.Outcome == string(purchase.Sold) })
}

// rowIsAwaited reports whether a statement waits for a row of the database.
func (s *Servers) rowIsAwaited(ctx context.Context) bool {
	db := s.engine.Admin.WithContext(ctx)
	var waits struct{ Value int }
	err := db.Raw(dialect.Of(db).RowWaits).Scan(&waits).Error
	return err == nil && waits.Value > 0
}
