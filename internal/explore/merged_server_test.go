package explore_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/tier"
)

// TestMergedServers is TestMerged and TestState on servers in which statements wait.
func TestMergedServers(t *testing.T) {
	crash, timeout := []explore.Event{explore.Crash}, []explore.Event{explore.Timeout}
	three := func(c *explore.Config) { c.Buyers, c.Bound, c.Symmetry = 3, 1, true }
	// In make test, a search with hundreds of separate runs uses only one of the databases.
	elsewhere := func(t *testing.T, long bool) {
		if long {
			tier.Soak(t, "make test runs the long searches on one database")
		}
	}
	for db, open := range map[string]func(*testing.T) *engine.Engine{"mariadb": enginetest.Local, "postgres": enginetest.Postgres} {
		t.Run(db, func(t *testing.T) {
			if db == "postgres" {
				tier.Soak(t, "make test runs the same searches on MariaDB")
			}
			e := open(t)
			for _, c := range []exploretest.Expectation{
				{Strategy: "for-update", Events: timeout, Config: bound(2)},
				{Strategy: "for-update", Config: three},
				{Strategy: "serializable", Config: bound(1)},
				{Strategy: "named-lock", Config: bound(1)},
				{Strategy: "named-lock", Events: crash, Config: bound(1)},
				{Strategy: "coalesced", Events: crash},
				{Strategy: "bucketed", Config: bound(1)},
				{Strategy: "bucketed", Events: crash, Config: func(c *explore.Config) { c.Parts, c.Bound = 2, 1 }, Soak: "a long search; other searches cover a crash and a divided stock"},
				{Strategy: "unit-rows", Config: bound(1)},
				{Strategy: "setnx", Events: crash, Config: bound(1)},
			} {
				t.Run(c.Name(), func(t *testing.T) {
					tier.Soak(t, c.Soak)
					elsewhere(t, db == "postgres" && len(c.Events) > 0 && c.Events[0] == explore.Crash && c.Strategy != "setnx")
					config := exploretest.Config(e, exploretest.Entry(t, c.Strategy))
					config.Events = c.Events
					if c.Config != nil {
						c.Config(&config)
					}
					sameMerged(t, config)
				})
			}
			for decidesBy, buy := range map[string]func(context.Context, *planted, purchase.Order) (purchase.Receipt, error){
				"the ids of records":                         byID,
				"an id that was rolled back":                 byLostID,
				"a row that it locked unseen":                byUnseenLock,
				"a row that was changed and is as before":    byChangedBack,
				"what a transaction that has ended had read": byEndedReader,
				"whether its view is stale":                  byView,
				"when its view began":                        byFirstRead,
				"a line at a row, in two transactions":       byLine,
			} {
				t.Run(decidesBy, func(t *testing.T) {
					long := slices.Contains([]string{"the ids of records", "a line at a row, in two transactions"}, decidesBy)
					elsewhere(t, db == "mariadb" && long || db == "postgres" && decidesBy == "an id that was rolled back")
					config := exploretest.Config(e, lockstrategy.Entry{
						Name: "planted", Needs: []lockstrategy.Need{lockstrategy.NeedsRedis},
						New: func(d lockstrategy.Deps) purchase.Strategy { return &planted{deps: d, buy: buy} },
					})
					config.Stock = 2
					if long && !tier.Soaking() {
						config.Bound = 2
					}
					if _, full := sameMerged(t, config); long && len(full.Verdicts) < 2 {
						t.Errorf("only %v: proves nothing", full.Verdicts)
					}
				})
			}
		})
	}
}

// sameMerged compares a merged search with one that runs each schedule.
func sameMerged(t *testing.T, config explore.Config) (merged, full explore.Result) {
	t.Helper()
	merged = search(t, config)
	config.Full = true
	full = search(t, config)
	t.Logf("%d schedules, %d runs of %d states: %v", full.Explored, merged.Runs, merged.States, full.Verdicts)
	if !merged.Merged || !merged.Complete || !full.Complete || merged.Runs > full.Runs {
		t.Errorf("merged: %t; %d runs and %d, complete %t and %t", merged.Merged, full.Runs, merged.Runs, full.Complete, merged.Complete)
	}
	if merged.Explored != full.Explored || merged.Foreign != full.Foreign || !maps.Equal(merged.Verdicts, full.Verdicts) {
		t.Errorf("%d schedules (%d foreign), %v; merged %d (%d), %v", full.Explored, full.Foreign, full.Verdicts, merged.Explored, merged.Foreign, merged.Verdicts)
	}
	if config.Bound < 0 && !reflect.DeepEqual(full.Witness, merged.Witness) {
		t.Errorf("witness %+v; merged %+v", full.Witness, merged.Witness)
	}
	return merged, full
}

// passed creates two schedules with the same state. The first buyer records its progress in Redis. The second buyer
// reads the key before or after that.
func (s *planted) passed(ctx context.Context, o purchase.Order) (bool, error) {
	if !second(o) {
		return true, s.deps.Redis.Set(ctx, "planted:passed", "1", 0).Err()
	}
	n, err := s.deps.Redis.Exists(ctx, "planted:passed").Result()
	return n > 0, err
}

// lost takes a unit without a record if err is an error, so that a refusal changes the stock.
func (s *planted) lost(ctx context.Context, o purchase.Order, err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, s.deps.DB.WithContext(ctx).Exec("UPDATE product SET amount = amount - 1 WHERE name = ?", o.Product).Error)
}

// byLostID sells correctly only if the record's id directly follows that of the same buyer's rolled-back record. The
// second buyer also rolls back a record, or another change if the first buyer has passed.
func byLostID(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	lost := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	insert := func(tx *gorm.DB) error { return purchase.Insert(ctx, tx, "", s.deps.Now(), &lost) }
	change := func(tx *gorm.DB) error {
		return tx.Exec("UPDATE product SET version = 1 WHERE name = ?", o.Product).Error
	}
	if second(o) {
		passed, err := s.passed(ctx, o)
		switch {
		case err != nil:
			return gone(err)
		case passed:
			return gone(s.rolledBack(ctx, change))
		}
		return gone(s.rolledBack(ctx, insert))
	}
	if err := s.rolledBack(ctx, insert); err != nil {
		return gone(err)
	}
	if _, err := s.passed(ctx, o); err != nil {
		return gone(err)
	}
	receipt, err := s.sell(ctx, o, true)
	if err != nil || receipt.ID == lost.ID+1 {
		return receipt, err
	}
	return receipt, s.deps.DB.WithContext(ctx).Exec("UPDATE product SET amount = amount - 1 WHERE name = ?", o.Product).Error
}

// rolledBack runs the function do in a transaction, and rolls it back.
func (s *planted) rolledBack(ctx context.Context, do func(tx *gorm.DB) error) error {
	undone := errors.New("rolled back")
	err := purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error { return cmp.Or(do(tx), undone) })
	if errors.Is(err, undone) {
		return nil
	}
	return err
}

// byUnseenLock locks the existing parts without reading them. The second buyer inserts a part, and then either waits for
// the first buyer or does not.
func byUnseenLock(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	db := s.deps.DB.WithContext(ctx)
	if second(o) {
		if err := db.Exec("INSERT INTO product_part (product_name, part, amount) VALUES (?, 1, 0)", o.Product).Error; err != nil {
			return gone(err)
		}
		return gone(db.Exec("UPDATE product_part SET amount = 0 WHERE product_name = ? AND part = 1", o.Product).Error)
	}
	receipt := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	return receipt, purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		const unseen = "SELECT part FROM (SELECT part FROM product_part WHERE product_name = ? FOR UPDATE) AS locked WHERE part < 0"
		if err := tx.Exec(unseen, o.Product).Error; err != nil {
			return err
		}
		if err := tx.Exec("UPDATE product SET amount = amount - 1 WHERE name = ?", o.Product).Error; err != nil {
			return err
		}
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	}, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
}

// byChangedBack sells in a snapshot. After the snapshot began, the second buyer either changed the product and changed
// it back, or changed another row. PostgreSQL rejects the write only in the first case.
func byChangedBack(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	db := s.deps.DB.WithContext(ctx)
	if second(o) {
		passed, err := s.passed(ctx, o)
		if err != nil {
			return gone(err)
		}
		change := "UPDATE product SET version = version + ? WHERE name = ?"
		if passed {
			change = "UPDATE product_part SET amount = amount + ? WHERE product_name = ?"
		}
		return gone(cmp.Or(db.Exec(change, 1, o.Product).Error, db.Exec(change, -1, o.Product).Error))
	}
	if err := db.Exec("INSERT INTO product_part (product_name, part, amount) VALUES (?, 1, 0)", o.Product).Error; err != nil {
		return gone(err)
	}
	receipt := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	err := purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		if _, err := product.ByName(tx, o.Product); err != nil {
			return err
		}
		if _, err := s.passed(ctx, o); err != nil {
			return err
		}
		if err := tx.Exec("UPDATE product SET amount = amount - 1 WHERE name = ?", o.Product).Error; err != nil {
			return purchase.DatabaseError(ctx, "take", err)
		}
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	return receipt, s.lost(ctx, o, err)
}

// byEndedReader makes PostgreSQL reject one of two transactions that read each other's writes. The second buyer, whose
// transaction has ended, either has read the product or has not.
func byEndedReader(ctx context.Context, s *planted, o purchase.Order) (purchase.Receipt, error) {
	level := &sql.TxOptions{Isolation: sql.LevelSerializable}
	if second(o) {
		passed, err := s.passed(ctx, o)
		if err != nil {
			return gone(err)
		}
		return gone(purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
			if !passed {
				if _, err := product.ByName(tx, o.Product); err != nil {
					return err
				}
			}
			return tx.Exec("INSERT INTO product_part (product_name, part, amount) VALUES (?, 1, 0)", o.Product).Error
		}, level))
	}
	receipt := purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	err := purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		var parts int64
		if err := tx.Model(&stock.Part{}).Where("product_name = ?", o.Product).Count(&parts).Error; err != nil {
			return purchase.DatabaseError(ctx, "count", err)
		}
		if _, err := s.passed(ctx, o); err != nil {
			return err
		}
		if err := tx.Exec("UPDATE product SET amount = amount - 1 WHERE name = ?", o.Product).Error; err != nil {
			return purchase.DatabaseError(ctx, "take", err)
		}
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	}, level)
	return receipt, s.lost(ctx, o, err)
}

// byFirstRead sells according to its snapshot, which begins with its first plain read. That is correct only if
// no other buyer has sold since.
func byFirstRead(ctx context.Context, s *planted, o purchase.Order) (receipt purchase.Receipt, _ error) {
	receipt = purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	if second(o) {
		return s.sell(ctx, o, true)
	}
	return receipt, purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		if _, err := stock.PartsForUpdate(tx, o.Product); err != nil {
			return err
		}
		var id, amount int64
		if err := tx.Raw("SELECT id FROM product WHERE name = ?", o.Product).Scan(&id).Error; err != nil {
			return err
		}
		if err := tx.Raw("SELECT amount FROM product WHERE name = ?", o.Product).Scan(&amount).Error; err != nil {
			return err
		}
		if err := product.SetAmount(tx, id, amount-1); err != nil {
			return purchase.DatabaseError(ctx, "take", err)
		}
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	})
}

// byLine waits for the row in one transaction, and sells in another, according to the earlier read. In between, the
// buyers may have changed places in the queue.
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
