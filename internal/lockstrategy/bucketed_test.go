package lockstrategy_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

func restock(ctx context.Context, e *engine.Engine, name string, units int64) error {
	return purchase.Restock(ctx, e.DB, nil, name, units)
}

func mustRestock(t *testing.T, e *engine.Engine, name string, units int64) {
	t.Helper()
	require.NoError(t, restock(t.Context(), e, name, units))
}

// parts returns how many part rows a product's stock has.
func parts(t *testing.T, e *engine.Engine, name string) (n int64) {
	t.Helper()
	require.NoError(t, e.DB.Model(&stock.Part{}).Where("product_name = ?", name).Count(&n).Error)
	return n
}

// together buys n units at once, each for a different buyer. All buyers arrive before the first one
// is served.
func together(t *testing.T, e *engine.Engine, name string, n int) {
	t.Helper()
	var come, all sync.WaitGroup
	come.Add(n)
	d := onengine.Deps(e)
	var mu sync.Mutex
	asked := 0
	d.Now = func() time.Time { // each buyer calls Now as its wait begins
		mu.Lock()
		asked++
		first := asked <= n
		mu.Unlock()
		if first {
			come.Done()
			come.Wait()
		}
		return time.Now()
	}
	d.Settings.Wait = time.Minute
	shop := lockstrategy.NewBucketed(d)
	for i := range n {
		all.Go(func() {
			expect.NoError(t, expect.ErrorOf(shop.Buy(t.Context(), purchase.Order{Product: name, Purchaser: fmt.Sprint("buyer-", i), Amount: 1})))
		})
	}
	all.Wait()
}

// TestBucketedRows: there are as many rows as a process has concurrent buyers, within bounds. Until
// a restock, their number never falls.
func TestBucketedRows(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		mustRestock(t, e, "apple", 1000)
		for _, c := range []struct {
			buyers int
			want   int64
		}{{1, 2}, {3, 4}, {9, 16}, {1, 16}, {70, 32}, {2, 32}} {
			together(t, e, "apple", c.buyers)
			expect.Equal(t, parts(t, e, "apple"), c.want, "rows with", c.buyers, "buyers at once")
		}
		mustHold(t, e, 86, 914)
		mustRestock(t, e, "apple", 10)
		expect.Equal(t, parts(t, e, "apple"), 0, "rows after a restock")
		together(t, e, "apple", 1)
		expect.Equal(t, parts(t, e, "apple"), 2, "rows after a sale")
	})
}

// ofParts are the strategies that keep units in parts.
var ofParts = []string{"bucketed", "unit-rows"}

func build(t *testing.T, name string, d lockstrategy.Deps) purchase.Strategy {
	t.Helper()
	entry, ok := lockstrategy.ByName(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return entry.New(d)
}

// TestPartsRestock: a restock during a sale waits for the sale and deletes its record with the
// others. This holds whether the sale moves units between the product's row and its parts, or uses
// the parts alone.
func TestPartsRestock(t *testing.T) {
	for _, c := range []struct {
		name   string
		engine func(t *testing.T) *engine.Engine
	}{{"mariadb", enginetest.Local}, {"postgres", enginetest.Postgres}} {
		t.Run(c.name, func(t *testing.T) {
			e := c.engine(t)
			var shop purchase.Strategy
			buy := func(ctx context.Context, who string) error {
				_, err := shop.Buy(ctx, purchase.Order{Product: "apple", Purchaser: who, Amount: 1})
				return err
			}
			for i := range 2 * len(ofParts) {
				shop = build(t, ofParts[i/2], onengine.Deps(e))
				divided := i%2 == 1
				mustRestock(t, e, "apple", 50)
				if divided {
					require.NoError(t, buy(t.Context(), "divides"))
				}
				// The restock starts when the buyer inserts its record: by then the buyer has
				// locked all its rows.
				restocked := make(chan error, 1)
				const hook = "restock meanwhile"
				err := e.DB.Callback().Create().Before("gorm:create").Register(hook, func(tx *gorm.DB) {
					if _, record := tx.Statement.Dest.(*purchase.Record); record {
						go func() { restocked <- restock(t.Context(), e, "apple", 100) }()
						_ = tx.AddError(waitForRow(e)) // ends the buyer's transaction, for which the restock waits
					}
				})
				require.NoError(t, err)
				err = buy(t.Context(), "in between")
				_ = e.DB.Callback().Create().Remove(hook)
				err = errors.Join(err, <-restocked)
				require.NoError(t, err)
				mustHold(t, e, 0, 100)
				require.NoError(t, buy(t.Context(), "after"))
				mustHold(t, e, 1, 99)
			}
		})
	}
}

// waitForRow returns when a statement waits for a row lock. It returns an error if none does within a minute.
func waitForRow(e *engine.Engine) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		var waits struct{ Value int }
		if err := e.Admin.Raw(dialect.Of(e.DB).RowWaits).Scan(&waits).Error; err != nil || waits.Value > 0 {
			return err
		}
	}
	return errors.New("no statement waits for a row")
}

// TestPartsDeadlocks: several processes sell several new products to many buyers at once.
// Everything is sold, and no transactions deadlock.
func TestPartsDeadlocks(t *testing.T) {
	for _, c := range []struct {
		name, counter string
		engine        func(t *testing.T) *engine.Engine
	}{
		{"mariadb", "SELECT variable_value AS value FROM information_schema.global_status WHERE variable_name = 'innodb_deadlocks'", enginetest.Local},
		{"postgres", "SELECT deadlocks AS value FROM pg_stat_database WHERE datname = current_database()", enginetest.Postgres},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := c.engine(t)
			deadlocks := func() int {
				var seen struct{ Value int }
				require.NoError(t, e.Admin.Raw(c.counter).Scan(&seen).Error)
				return seen.Value
			}
			before := deadlocks()
			d := onengine.Deps(e)
			d.Settings.Wait = time.Minute
			for round := range 5 * len(ofParts) {
				var shops []purchase.Strategy
				for range 3 {
					shops = append(shops, build(t, ofParts[round%len(ofParts)], d))
				}
				var all sync.WaitGroup
				names := []string{fmt.Sprint(round, "a"), fmt.Sprint(round, "b"), fmt.Sprint(round, "c")}
				for _, name := range names {
					mustRestock(t, e, name, 40)
				}
				for i := range 90 {
					all.Go(func() {
						o := purchase.Order{Product: names[i%3], Purchaser: fmt.Sprint("buyer-", i), Amount: int64(1 + i%2)}
						if _, err := shops[i/3%3].Buy(t.Context(), o); err != nil && !errors.Is(err, purchase.ErrSoldOut) {
							t.Error(err)
						}
					})
				}
				all.Wait()
				for _, name := range names {
					if left, err := product.Left(e.DB, name); err != nil || left > 1 { // an order of two units may be refused
						t.Errorf("%d left of %s, %v", left, name, err)
					}
				}
			}
			expect.Equal(t, deadlocks(), before, "deadlocks")
		})
	}
}

// TestUnitRowsPool: the pool is bounded, however large the stock. Orders larger than the pool are
// sold, and so is the whole stock.
func TestUnitRowsPool(t *testing.T) {
	for _, e := range []*engine.Engine{enginetest.Local(t), enginetest.Postgres(t)} {
		mustRestock(t, e, "apple", 2500)
		d := onengine.Deps(e)
		d.Settings.Wait = time.Minute // 1000 units are 1000 commands
		shop := lockstrategy.NewUnitRows(d)
		for i, c := range []struct{ units, left, rows int64 }{
			{1, 2499, 1000},
			{3, 2496, 997},
			{1000, 1496, 1000},
			{1000, 496, 0}, // takes all rows
			{497, -1, 0},
			{495, 1, 1},
			{1, 0, 0},
			{1, -1, 0},
		} {
			receipt, err := shop.Buy(t.Context(), purchase.Order{Product: "apple", Purchaser: fmt.Sprint(i), Amount: c.units})
			if c.left < 0 && !errors.Is(err, purchase.ErrSoldOut) || c.left >= 0 && (err != nil || receipt.Left != c.left) {
				t.Errorf("%s: %d units: %+v, %v; want %d left", e.Server, c.units, receipt, err, c.left)
			}
			expect.Equal(t, parts(t, e, "apple"), c.rows, e.Server, "rows after", c.units, "units")
		}
		mustHold(t, e, 6, 0)
	}
}
