// Package copies reproduces lock bugs of programs that are not written in Go. Each reproduction
// sends the commands of the buggy version, as a strategy of the shop. The explorer runs every
// interleaving of two buyers' commands on MariaDB and Redis. The same strategy with the fix is the
// control. docs/reference/track-record.md has the table.
package copies

import (
	"context"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// These tests do not run in parallel: the explorer inspects every goroutine of the process.

// open returns an explorer of a strategy, for two buyers of the last unit.
func open(t *testing.T, name string, config explore.Config, build func(d lockstrategy.Deps) purchase.Strategy) *explore.Explorer {
	t.Helper()
	config.Strategy = lockstrategy.Entry{
		Name: name, Needs: []lockstrategy.Need{lockstrategy.NeedsRedis}, New: build,
		Scripts: append(redisscript.Rlock(), redisscript.Description{
			SHA: deleteOwn.Hash(), Name: "delete if mine", Role: redisscript.Release, Lock: 1, Refused: []string{"0"},
		}),
	}
	config.Engine, config.Buyers, config.Stock, config.Product = enginetest.Local(t), 2, 1, "apple"
	config.Budget = 5 * time.Minute
	return exploretest.Open(t, config)
}

// search runs all schedules.
func search(t *testing.T, name string, config explore.Config, build func(d lockstrategy.Deps) purchase.Strategy) explore.Result {
	t.Helper()
	result, err := open(t, name, config, build).Search(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !result.Complete || result.Explored < 2 {
		t.Fatalf("%s: explored %d, complete %v: proves nothing", name, result.Explored, result.Complete)
	}
	t.Logf("%s: explored all %d schedules: %d oversell, in %d a buyer frees another's lock",
		name, result.Explored, result.Verdicts[verdict.Oversold], result.Foreign)
	return result
}

// show logs a witness.
func show(t *testing.T, w *explore.Witness) {
	t.Helper()
	var text strings.Builder
	if err := w.Text(&text, 2); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s\n%s", w.Schedule, &text)
}

// section reads the stock, checks it, takes a unit and records the sale, all in tx.
func section(ctx context.Context, d lockstrategy.Deps, tx *gorm.DB, o purchase.Order) (receipt purchase.Receipt, err error) {
	p, err := product.ByName(tx, o.Product)
	if err == nil {
		err = purchase.Check(p, o)
	}
	if err != nil {
		return receipt, err
	}
	return purchase.Section{DB: d.DB, Strategy: "copy", Now: d.Now}.Write(ctx, tx, p, o, 0)
}
