package explore_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/dialect"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/localserver/localservertest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// privately opens servers of the test's own, as shop explore --engine local does.
func privately(t *testing.T, db string) *engine.Engine {
	t.Helper()
	localservertest.SkipShort(t)
	e, err := engine.Open(context.WithoutCancel(t.Context()), engine.Config{Name: engine.Local, LocalDB: db, Wait: 5 * time.Second, Conns: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// TestMergedServers: what TestMerged and TestState say, where statements wait in the server: as
// many schedules, that end in the same ways, with the same shortest witness.
func TestMergedServers(t *testing.T) {
	crash, timeout := []explore.Event{explore.Crash}, []explore.Event{explore.Timeout}
	three := func(c *explore.Config) { c.Buyers, c.Bound, c.Symmetry = 3, 1, true }
	for _, db := range []string{"mariadb", dialect.Postgres} {
		t.Run(db, func(t *testing.T) {
			e := privately(t, db)
			for _, c := range []exploretest.Expectation{
				{Strategy: "none"},
				{Strategy: "for-update", Events: timeout, Config: bound(2)},
				{Strategy: "for-update", Config: three},
				{Strategy: "transaction", Config: bound(2)},
				{Strategy: "conditional", Events: crash, Config: bound(1)},
				{Strategy: "optimistic", Config: bound(2)},
				{Strategy: "serializable", Config: bound(1)},
				{Strategy: "named-lock", Config: bound(1)},
				{Strategy: "coalesced", Events: crash},
				{Strategy: "bucketed", Config: bound(1)},
				{Strategy: "unit-rows", Config: bound(1)},
				{Strategy: "setnx", Events: crash, Config: bound(1)},
				{Strategy: "for-update", Soak: "some thousand schedules, run one by one"},
				{Strategy: "conditional", Events: []explore.Event{explore.Crash, explore.Timeout}, Soak: "some thousand schedules, run one by one"},
				{Strategy: "transaction", Soak: "some thousand schedules, run one by one"},
				{Strategy: "unit-rows", Config: bound(4), Soak: "some thousand schedules, run one by one"},
				{Strategy: "bucketed", Config: bound(3), Soak: "some thousand schedules, run one by one"},
			} {
				t.Run(c.Name(), func(t *testing.T) {
					exploretest.SkipUnlessSoak(t, c.Soak)
					config := exploretest.Config(e, exploretest.Entry(t, c.Strategy))
					config.Events = c.Events
					if c.Config != nil {
						c.Config(&config)
					}
					sameMerged(t, config)
				})
			}
			for decidesBy, buy := range map[string]func(context.Context, *planted, purchase.Order) (purchase.Receipt, error){
				"the ids of records":                   byID,
				"an id that was rolled back":           byLostID,
				"whether its view is stale":            byView,
				"when its view began":                  byFirstRead,
				"a line at a row, in two transactions": byLine,
			} {
				t.Run(decidesBy, func(t *testing.T) {
					config := exploretest.Config(e, lockstrategy.Entry{
						Name: "planted", New: func(d lockstrategy.Deps) purchase.Strategy { return &planted{deps: d, buy: buy} },
					})
					config.Stock, config.Bound = 2, 2
					sameMerged(t, config)
				})
			}
		})
	}
}

// sameMerged compares a search with one that runs each schedule.
func sameMerged(t *testing.T, config explore.Config) {
	t.Helper()
	merged := search(t, config)
	config.Full = true
	full := search(t, config)
	t.Logf("%d schedules, %d runs of %d states: %v", full.Explored, merged.Runs, merged.States, full.Verdicts)
	if !merged.Merged || merged.Runs > full.Runs {
		t.Errorf("merged: %t; %d runs and %d", merged.Merged, merged.Runs, full.Runs)
	}
	if merged.Explored != full.Explored || merged.Foreign != full.Foreign || !maps.Equal(merged.Verdicts, full.Verdicts) {
		t.Errorf("%d schedules (%d foreign), %v; merged %d (%d), %v", full.Explored, full.Foreign, full.Verdicts, merged.Explored, merged.Foreign, merged.Verdicts)
	}
	if config.Bound < 0 && !reflect.DeepEqual(full.Witness, merged.Witness) {
		t.Errorf("witness %+v; merged %+v", full.Witness, merged.Witness)
	}
}

// byLostID sells rightly only where its record follows one of its own that was rolled back: the
// second buyer uses up an id, and rolls it back, too.
func byLostID(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	lost := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	failed := errors.New("rolled back")
	err := purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		return cmp.Or(purchase.Insert(ctx, tx, "", s.deps.Now(), &lost), failed)
	})
	if !errors.Is(err, failed) || second(o) {
		return gone(err)
	}
	receipt, err := s.sell(ctx, o, true)
	if err != nil || receipt.ID == lost.ID+1 {
		return receipt, err
	}
	return receipt, s.deps.DB.WithContext(ctx).Exec("UPDATE product SET amount = amount - 1 WHERE name = ?", o.Product).Error
}

// byFirstRead sells what its view shows, which began with its first read, whatever was read
// for update since: rightly only where nobody has sold in between.
func byFirstRead(ctx context.Context, s *planted, o purchase.Order) (receipt purchase.Receipt, _ error) {
	receipt = purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1}
	return receipt, purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		var records int64
		if err := tx.Model(&purchase.Record{}).Where("product_name = ?", o.Product).Count(&records).Error; err != nil {
			return err
		}
		if _, err := product.ForUpdate(tx, o.Product); err != nil {
			return err
		}
		p, err := product.ByName(tx, o.Product)
		if err != nil {
			return err
		}
		if err := product.SetAmount(tx, p.ID, p.Amount-1); err != nil {
			return err
		}
		receipt.Left = p.Amount - 1
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	})
}

// byLine waits for the row in one transaction and sells in another one, by what it has read in
// the first: who was first in the line may be second now.
func byLine(ctx context.Context, s *planted, o purchase.Order) (receipt purchase.Receipt, _ error) {
	var seen product.Product
	err := purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) (err error) {
		if seen, err = product.ForUpdate(tx, o.Product); err != nil || second(o) {
			return err
		}
		return product.SetAmount(tx, seen.ID, seen.Amount)
	})
	if err != nil {
		return receipt, err
	}
	receipt = purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1}
	return receipt, purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		if _, err := product.ForUpdate(tx, o.Product); err != nil {
			return err
		}
		if err := product.SetAmount(tx, seen.ID, seen.Amount-1); err != nil {
			return err
		}
		receipt.Left = seen.Amount - 1
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	})
}
