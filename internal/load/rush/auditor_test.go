package rush_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// TestNodesDisagree: two databases stand for the nodes of a cluster. Equal stock and records pass. A
// different stock, or different records, are a break.
func TestNodesDisagree(t *testing.T) {
	one, two := enginetest.Embedded(t).Admin, enginetest.Embedded(t).Admin
	auditor := rush.Database{DB: one, Nodes: func() ([]*gorm.DB, error) { return []*gorm.DB{one, two}, nil }, AgreeWithin: time.Millisecond}
	for _, c := range []struct {
		name, breaks string
		want         verdict.Verdict
	}{
		{"the same", "", verdict.Holds},
		{"another stock", "UPDATE product SET amount = amount + 1 WHERE name = 'pear'", verdict.Diverged},
		{"other records", "UPDATE purchase_history SET id = id + 100 WHERE product_name = 'pear'", verdict.Diverged},
	} {
		for _, db := range []*gorm.DB{one, two} {
			if err := product.Put(db, "pear", 1); err != nil {
				t.Fatal(err)
			}
			if err := purchase.Clear(db, "pear"); err != nil {
				t.Fatal(err)
			}
			receipt := purchase.Receipt{Product: "pear", Purchaser: "ann", Amount: 1}
			if err := purchase.Insert(t.Context(), db, "", time.Now(), &receipt); err != nil {
				t.Fatal(err)
			}
			if _, err := product.TakeIfLeft(db, "pear", 1); err != nil {
				t.Fatal(err)
			}
		}
		if c.breaks != "" {
			if err := two.Exec(c.breaks).Error; err != nil {
				t.Fatal(err)
			}
		}
		report, err := auditor.Audit(t.Context(), "pear")
		if err != nil {
			t.Fatal(err)
		}
		got, why := audit.Judge(audit.Evidence{Sums: report, Demand: 2, MaxOverlap: 2, SoldOut: 1})
		if got != c.want {
			t.Errorf("%s: %s, want %s: %s", c.name, got, c.want, why)
		}
	}
}
