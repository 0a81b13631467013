package lockstrategy_test

import (
	"io"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/tier"
)

// TestBracesOnCluster: braces in a product's name do not affect where its keys are. Every strategy
// that uses a Redis Cluster sells and restocks such products.
func TestBracesOnCluster(t *testing.T) {
	tier.Soak(t, "needs a cluster of Redis")
	e := enginetest.Redis(t, topology.Cluster)
	products := []string{"a}b{c", "}", "{}", "{a}", "a{b", "}x{", "{{a}}", "plain"}
	for _, entry := range lockstrategy.All() {
		if !slices.Contains(entry.Needs, lockstrategy.NeedsRedis) {
			continue
		}
		t.Run(entry.Name, func(t *testing.T) {
			d := onengine.Deps(e)
			d.Settings.Wait = time.Minute
			strategy := entry.New(d)
			if c, ok := strategy.(io.Closer); ok {
				defer c.Close()
			}
			for _, name := range products {
				err := purchase.InLockingTx(t.Context(), e.DB, func(tx *gorm.DB) error {
					if err := product.Put(tx, name, 2); err != nil {
						return err
					}
					return purchase.Clear(tx, name)
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := strategy.(purchase.Resetter).Reset(t.Context(), name); err != nil {
					t.Errorf("%q: reset: %v", name, err)
				}
				for _, buyer := range []string{"first", "second"} {
					if _, err := strategy.Buy(t.Context(), purchase.Order{Product: name, Purchaser: buyer, Amount: 1}); err != nil {
						t.Errorf("%q: %s buyer: %v", name, buyer, err)
					}
				}
			}
		})
	}
}
