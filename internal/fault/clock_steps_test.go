package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// TestClockSteps sets the wall clocks of MariaDB and of every Redis an hour ahead, then an hour back, then to
// the right time, while buyers buy. After each step the shop must sell again by itself. Every buyer must be
// answered, none with an error. Strategies that hold under clock-jump must have correct stock and records. The
// shop's own clock cannot be moved alone: Go reads it without the C library, and a time namespace has no wall
// clock of its own. TestWaitsAreMonotonic in package internal covers the shop, and the fault client-clock
// covers its strategies.
func TestClockSteps(t *testing.T) {
	tier.Test(t, "needs servers")
	dir := t.TempDir()
	shim, err := buildShim(dir)
	if err != nil {
		t.Skip(err)
	}
	clock, err := newClock(shim, filepath.Join(dir, "offset"))
	require.NoError(t, err)
	for _, variable := range clock.env { // the servers inherit it
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	e, err := engine.Open(t.Context(), engine.Config{Name: engine.Local, Wait: 5 * time.Second, Conns: 16})
	require.NoError(t, err)
	defer e.Close()
	for _, entry := range lockstrategy.All() {
		deps := onengine.Deps(e)
		deps.Settings.LeaseTTL = 2 * time.Second // after the step back, an earlier lease lives an hour longer
		if entry.Missing(deps) != "" || !holdsByAnyClock(entry) {
			continue
		}
		t.Run(entry.Name, func(t *testing.T) {
			shop := entry.New(deps)
			if c, ok := shop.(io.Closer); ok {
				defer c.Close()
			}
			err := purchase.InTx(t.Context(), e.DB, func(tx *gorm.DB) error { return product.Put(tx, entry.Name, 1_000_000) })
			require.NoError(t, err)
			stepClocks(t, e, clock, shop, entry.Name)
		})
	}
}

// holdsByAnyClock reports whether the strategy keeps its promise when the clock jumps. A strategy
// without a lease in Redis always does.
func holdsByAnyClock(entry lockstrategy.Entry) bool {
	other := slices.ContainsFunc(entry.Needs, func(n lockstrategy.Need) bool {
		return n == lockstrategy.NeedsZookeeper || n == lockstrategy.NeedsEtcd
	})
	redis := slices.Contains(entry.Needs, lockstrategy.NeedsRedis) || slices.Contains(entry.Needs, lockstrategy.NeedsRedlock)
	return !other && entry.Promised(promise.Rush, "mariadb") == verdict.Holds && (!redis || entry.Promised(promise.ClockJump, "mariadb") == verdict.Holds)
}

// stepClocks makes eight buyers buy, one order after the other, while the clocks are set.
func stepClocks(t *testing.T, e *engine.Engine, clock *clock, shop purchase.Strategy, name string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var buyers sync.WaitGroup
	sales := make(chan struct{})
	for i := range 8 {
		buyers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				called := time.Now()
				_, err := shop.Buy(context.WithoutCancel(ctx), purchase.Order{Product: name, Purchaser: fmt.Sprintf("buyer-%d-%d", i, n), Amount: 1})
				switch {
				case err == nil:
					select {
					case sales <- struct{}{}:
					case <-ctx.Done():
					}
				case !errors.Is(err, purchase.ErrBusy) && !errors.Is(err, purchase.ErrUnknownOutcome):
					t.Errorf("%v", err)
					return
				}
				if took := time.Since(called); took > time.Minute {
					t.Errorf("answered after %s", took)
				}
			}
		})
	}
	for _, offset := range []time.Duration{0, time.Hour, -time.Hour, 0} {
		require.NoError(t, clock.set(offset))
		mustBeAhead(t, e, offset)
		deadline := time.After(time.Minute)
		for range 40 { // more sales than the buyers have in flight
			select {
			case <-sales:
			case <-deadline:
				t.Fatalf("with the clocks %s ahead nobody is sold to", offset)
			}
		}
	}
	stop()
	buyers.Wait()
	if c, ok := shop.(interface {
		Drain(ctx context.Context, product string) error
	}); ok { // Drain writes the orders of buyers that gave up
		if err := c.Drain(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	books, err := audit.Read(t.Context(), e.DB, name)
	if err != nil || books.Drift != 0 || books.Records < 160 {
		t.Errorf("%+v, %v, want at least 160 records and no drift", books, err)
	}
}

// mustBeAhead fails the test unless the servers report that their clocks were set.
func mustBeAhead(t *testing.T, e *engine.Engine, offset time.Duration) {
	t.Helper()
	var seconds int64
	require.NoError(t, e.DB.Raw("SELECT CAST(UNIX_TIMESTAMP() AS SIGNED)").Scan(&seconds).Error)
	redis, err := e.Redis.Time(t.Context()).Result()
	require.NoError(t, err)
	for server, now := range map[string]time.Time{"mariadb": time.Unix(seconds, 0), "redis": redis} {
		if off := time.Until(now) - offset; off.Abs() > time.Minute {
			t.Fatalf("the clock of %s is %s off from what was set", server, off)
		}
	}
}
