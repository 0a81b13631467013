package web

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/teach/live"
)

// watcher receives each buy and each lock event, for the metrics, the live page and `shop verify`.
type watcher struct {
	metrics    *metrics
	hub        *live.Hub
	failpoints *failpoint.Set // nil unless `shop verify` has started the shop
}

func (w *watcher) Called(strategy string, o purchase.Order) {
	w.metrics.called()
	w.publish(history.Event{Kind: history.Call, At: time.Now(), Strategy: strategy, Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount})
}

func (w *watcher) TurnedAway(strategy string, o purchase.Order) {
	w.metrics.turnedAway(strategy)
	now := time.Now()
	w.publish(history.Event{Kind: history.Call, At: now, Strategy: strategy, Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount})
	w.publish(history.Event{
		Kind: history.Return, At: now, Strategy: strategy, Product: o.Product, Purchaser: o.Purchaser, Outcome: string(purchase.Busy),
	})
}

func (w *watcher) Returned(strategy string, o purchase.Order, r purchase.Receipt, outcome purchase.Outcome, called, asked time.Time) {
	now := time.Now()
	w.metrics.returned(strategy, r, outcome, now.Sub(called), now.Sub(asked))
	e := history.Event{
		Kind: history.Return, At: now, Strategy: strategy, Product: o.Product, Purchaser: o.Purchaser, Outcome: string(outcome),
	}
	switch {
	case r.Replayed:
		e.Kind = history.Replay
	case outcome == purchase.Sold:
		e.Amount, e.Left = r.Amount, &r.Left
	}
	w.publish(e)
}

// lockEvent implements lockstrategy.Observer. A Waiting event with a token means that a strategy that writes
// sales later, such as `redis-lua`, has promised the buyer a unit. lockEvent records this machine's time,
// since a fault may have changed the strategy's clock.
func (w *watcher) lockEvent(ctx context.Context, e lockstrategy.Event) {
	switch {
	case w.failpoints == nil:
	case e.Kind == lockstrategy.Waiting && e.Token != "":
		defer w.failpoints.Admitted(ctx)
	case e.Kind == lockstrategy.Released:
		defer w.failpoints.Releasing(ctx)
	}
	w.publish(history.Event{
		Kind: history.Kind(e.Kind), At: time.Now(), Strategy: e.Strategy, Product: e.Product, Purchaser: e.Purchaser, Token: e.Token,
	})
}

// publish sends an event to the live page. If failpoints is set, it also sends the event to `shop verify`.
func (w *watcher) publish(e history.Event) {
	if w.failpoints != nil {
		w.failpoints.Record(e)
	}
	w.hub.Publish(e)
}

// soldTells reports whether the remaining stock in the strategy's receipt tells which unit was sold.
func soldTells(strategy string) bool {
	entry, ok := lockstrategy.ByName(strategy)
	return ok && !entry.LeftLags && !entry.AdmitsFirst
}
