package own_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// crossed locks two rows; buyer 2 locks them in reverse.
type crossed struct{ deps lockstrategy.Deps }

// beside is a row that no buyer buys.
const beside = "beside"

func (s crossed) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	rows := []string{o.Product, beside}
	if o.Purchaser == "buyer-2" {
		slices.Reverse(rows)
	}
	receipt = purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: 1, Strategy: "planted"}
	err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		for _, name := range rows {
			p, err := product.ForUpdate(tx, name)
			if err != nil {
				return purchase.DatabaseError(ctx, "lock "+name, err)
			}
			if p.Amount < 1 {
				return purchase.ErrSoldOut
			}
		}
		if err := tx.Exec("UPDATE product SET amount = amount - 1 WHERE name = ?", o.Product).Error; err != nil {
			return purchase.DatabaseError(ctx, "take one", err)
		}
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	})
	return receipt, err
}

// TestDeadlock: a deadlock is part of a schedule. If two buyers wait for each other, the database
// fails one of them, and the other goes on. Each run of the schedule ends in the same way, and so
// does each search.
func TestDeadlock(t *testing.T) {
	for _, c := range []struct {
		name   string
		open   func(*testing.T) *engine.Engine
		code   string
		victim int
	}{
		{"MariaDB", enginetest.Local, "1213", 2},
		{"PostgreSQL", enginetest.Postgres, "40P01", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := c.open(t)
			if err := product.Put(e.Admin.WithContext(t.Context()), beside, 1); err != nil {
				t.Fatal(err)
			}
			entry := lockstrategy.Entry{Name: "planted", New: func(d lockstrategy.Deps) purchase.Strategy { return crossed{d} }}
			config := exploretest.Config(e, entry)
			x := exploretest.Open(t, config)
			digests := map[string]bool{}
			for range 3 {
				result, err := x.Search(t.Context())
				if err != nil || !result.Complete || len(result.Verdicts) != 1 || result.Verdicts[verdict.Holds] == 0 {
					t.Fatalf("%+v, %v", result, err)
				}
				digests[result.Digest] = true
			}
			if len(digests) != 1 {
				t.Errorf("three searches took %d courses", len(digests))
			}
			// Each buyer has locked a row. Buyer 1 waits for the other row, and buyer 2 completes
			// the deadlock.
			w, err := x.Replay(t.Context(), "v1:planted:b2:s1:1*2.2*2.1.2*2.1*3")
			if err != nil {
				t.Fatal(err)
			}
			lost, other := w.Outcomes[c.victim-1], w.Outcomes[2-c.victim]
			if lost.Answer != "busy" || !strings.Contains(lost.Error, c.code) || other.Answer != "sold" {
				t.Errorf("%+v, want that buyer %d is told %s and the other one is sold to", w.Outcomes, c.victim, c.code)
			}
			exploretest.Replays(t, x, w)
		})
	}
}
