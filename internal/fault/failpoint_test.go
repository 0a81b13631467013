package fault_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestHold: at each point a buyer is stopped before its write becomes visible, and goes on when
// told to. An unnamed buyer is not stopped.
func TestHold(t *testing.T) {
	events, out := io.Pipe()
	commands, orders := io.Pipe()
	set := failpoint.New(out)
	go set.Obey(commands)
	e, err := engine.Open(t.Context(), engine.Config{
		DB: localservertest.MySQL(t).URL(), Wait: time.Minute, Conns: 4, WrapDB: set.Connector,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	deps := lockstrategy.Deps{DB: e.DB, Settings: lockstrategy.DefaultSettings(), Now: time.Now}
	deps.Settings.Wait = time.Minute
	lines := bufio.NewScanner(events)
	expect := func(kind history.Kind) {
		t.Helper()
		var e history.Event
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &e) != nil || e.Kind != kind {
			t.Fatalf("%s, want %s", lines.Text(), kind)
		}
	}
	stock := func() int64 {
		t.Helper()
		p, err := product.ByName(e.Admin, "apple")
		require.NoError(t, err)
		return p.Amount
	}
	for _, strategy := range []purchase.Strategy{lockstrategy.NewMutex(deps), lockstrategy.NewConditional(deps), lockstrategy.NewForUpdate(deps)} {
		for _, point := range []failpoint.Point{failpoint.Read, failpoint.Commit} {
			if _, err := set.Named(strategy).Buy(t.Context(), purchase.Order{Product: "apple", Purchaser: "ann", Amount: 1}); err != nil {
				t.Fatal(err)
			}
			before := stock()
			_, _ = fmt.Fprintln(orders, "hold", "bob", point)
			expect(history.Armed)
			done := make(chan error, 1)
			go func() {
				_, err := set.Named(strategy).Buy(context.Background(), purchase.Order{Product: "apple", Purchaser: "bob", Amount: 1})
				done <- err
			}()
			expect(history.Holding)
			if got := stock(); got != before {
				t.Errorf("%T held at %s: the stock is %d, want %d", strategy, point, got, before)
			}
			_, _ = fmt.Fprintln(orders, "go bob")
			expect(history.Resumed)
			if err := <-done; err != nil || stock() != before-1 {
				t.Errorf("%T after %s: %v, stock %d, want %d", strategy, point, err, stock(), before-1)
			}
		}
	}
}
