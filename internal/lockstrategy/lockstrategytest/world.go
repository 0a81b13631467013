package lockstrategytest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// longLease is a TTL so long that no lease of this suite expires by itself. The library redsync gives a
// node 5 % of the TTL to answer.
const longLease = 2 * time.Minute

// world is the strategy under test with its engine, the servers of the test.
type world struct {
	auditor
	entry lockstrategy.Entry

	mu      sync.Mutex
	closers []io.Closer
}

// instance builds a new instance of the strategy. Two instances share no more than two processes on the
// same servers do. The parameter `observe` may be nil.
func (w *world) instance(wait time.Duration, observe lockstrategy.Observer) purchase.Strategy {
	d := onengine.Deps(w.engine)
	d.Settings.Wait, d.Settings.LeaseTTL = wait, longLease
	d.Observe = observe
	return w.build(d)
}

// build returns an instance that is closed at the end of the test.
func (w *world) build(d lockstrategy.Deps) purchase.Strategy {
	s := w.entry.New(d)
	if c, ok := s.(io.Closer); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.closers = append(w.closers, c)
	}
	return s
}

func (w *world) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.closers {
		_ = c.Close()
	}
}

// stock restocks a product through a new instance, as a newly started shop does.
func (w *world) stock(tb testing.TB, name string, units int64) {
	tb.Helper()
	require.NoError(tb, w.restock(tb.Context(), w.instance(stepTimeout, nil), name, units))
}

// restock restocks a product and resets the data that the strategy keeps outside the database.
func (w *world) restock(ctx context.Context, shop purchase.Strategy, name string, units int64) error {
	var kept []purchase.Resetter
	if r, ok := shop.(purchase.Resetter); ok {
		kept = append(kept, r)
	}
	return purchase.Restock(ctx, w.engine.DB, kept, name, units)
}

// settle makes the strategy write the orders that it has admitted and not written yet.
func (w *world) settle(tb testing.TB, name string) {
	tb.Helper()
	if d, ok := w.instance(stepTimeout, nil).(interface {
		Drain(ctx context.Context, product string) error
	}); ok {
		require.NoError(tb, d.Drain(tb.Context(), name))
	}
}

func order(name string, buyer int, units int64) purchase.Order {
	return purchase.Order{Product: name, Purchaser: fmt.Sprintf("buyer-%d", buyer), Amount: units}
}

// buyLater buys one unit of "apple" in the background. The channel receives the error when the buy returns.
func buyLater(ctx context.Context, shop purchase.Strategy, buyer int) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := shop.Buy(ctx, order("apple", buyer, 1))
		answer <- err
	}()
	return answer
}

// seesVictims reports whether this database shows the statements that wait for a row.
func (w *world) seesVictims() bool { return dialect.Of(w.engine.DB).RowWaits != "" }

func lacksVictims(w *world) string {
	if w.seesVictims() {
		return ""
	}
	return "a SQLite file has one writer for all products, and does not show which statements wait for it"
}

func lacksLease(w *world) string {
	if _, locked := w.instance(stepTimeout, nil).(*lockstrategy.Locked); !locked || len(w.entry.Needs) == 0 {
		return "its lock, if it has one, is in this process or in the database: no other server can forget it"
	}
	return ""
}

func lacksLeaseAndVictims(w *world) string {
	if why := lacksLease(w); why != "" {
		return why
	}
	return lacksVictims(w)
}

// lacksRedisLease returns a reason to skip a check that stops a client between two commands. The suite can
// do that only with a Redis client.
func lacksRedisLease(w *world) string {
	if why := lacksLease(w); why != "" {
		return why
	}
	if !w.onRedis() {
		return "its lock is not in Redis, where the suite can stop a client between two commands"
	}
	return ""
}

func (w *world) onRedis() bool {
	return slices.Contains(w.entry.Needs, lockstrategy.NeedsRedis) || slices.Contains(w.entry.Needs, lockstrategy.NeedsRedlock)
}

func lacksStock(w *world) string {
	if _, keeps := w.instance(stepTimeout, nil).(purchase.StockKeeper); !keeps {
		return "it keeps no copy of the stock outside the database"
	}
	return ""
}

func lacksStockAndVictims(w *world) string {
	if why := lacksStock(w); why != "" {
		return why
	}
	return lacksVictims(w)
}
