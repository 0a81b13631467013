package lockstrategy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// grouped puts all orders into one group: the first statement of the leader waits until each buyer
// has queued. The parameter `stock` is the number of apples. The errors are in the order of the
// parameter `orders`, not in order of arrival.
func grouped(t *testing.T, e *engine.Engine, stock int64, orders []purchase.Order, ctxs ...context.Context) []error {
	t.Helper()
	require.NoError(t, product.Put(e.DB, "apple", stock))
	inLine := make(chan struct{}, len(orders))
	all := make(chan struct{})
	d := onengine.Deps(e)
	d.Observe = func(context.Context, lockstrategy.Event) { inLine <- struct{}{} }
	var waited atomic.Bool
	err := e.DB.Callback().Query().Before("gorm:query").Register("all in line", func(tx *gorm.DB) {
		if _, reads := tx.Statement.Dest.(*product.Product); reads && !waited.Swap(true) {
			<-all
		}
	})
	require.NoError(t, err)
	defer func() { _ = e.DB.Callback().Query().Remove("all in line") }()
	shop := lockstrategy.NewCoalesced(d)
	errs := make([]error, len(orders))
	ended := make(chan struct{}, len(orders))
	for i, o := range orders {
		ctx := t.Context()
		if i < len(ctxs) && ctxs[i] != nil {
			ctx = ctxs[i]
		}
		go func() {
			var receipt purchase.Receipt
			receipt, errs[i] = shop.Buy(ctx, o)
			if errs[i] == nil && (receipt.ID == 0 || receipt.Purchaser != o.Purchaser || receipt.Amount != o.Amount) {
				t.Errorf("order %+v: receipt %+v", o, receipt)
			}
			ended <- struct{}{}
		}()
		<-inLine // so that they queue in this order
	}
	close(all)
	for range orders {
		<-ended
	}
	return errs
}

func apples(amounts ...int64) (orders []purchase.Order) {
	for i, n := range amounts {
		orders = append(orders, purchase.Order{Product: "apple", Purchaser: fmt.Sprintf("buyer-%d", i), Amount: n})
	}
	return orders
}

func mustBe(t *testing.T, errs []error, want ...error) {
	t.Helper()
	for i, err := range errs {
		expect.ErrorIs(t, err, want[i], "order", i)
	}
}

func mustHold(t *testing.T, e *engine.Engine, records, left int64) {
	t.Helper()
	books, err := audit.Read(t.Context(), e.DB, "apple")
	if err != nil || books.Drift != 0 || books.Records != records || books.Leftover != left {
		t.Errorf("stock and records %+v, %v; want %d records, %d left", books, err, records, left)
	}
}

// TestCoalescedDivides: a group that asks for more than the stock sells as much as it can in order
// of arrival, in one transaction.
func TestCoalescedDivides(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		var inserts atomic.Int64
		require.NoError(t, e.DB.Callback().Create().After("gorm:create").Register("count", func(*gorm.DB) { inserts.Add(1) }))
		errs := grouped(t, e, 6, apples(2, 1, 4, 2, 2, 1))
		mustBe(t, errs, nil, nil, purchase.ErrSoldOut, nil, purchase.ErrSoldOut, nil)
		mustHold(t, e, 4, 0)
		expect.Equal(t, inserts.Load(), 1, "statements that insert the records")
	})
}

// TestCoalescedLeaves: a buyer that hangs up between the write and the COMMIT is sold nothing. The
// others in its group are sold their units.
func TestCoalescedLeaves(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		hungUp := errors.New("hung up")
		ctx, hangUp := context.WithCancelCause(t.Context())
		err := e.DB.Callback().Create().After("gorm:create").Register("hang up", func(*gorm.DB) { hangUp(hungUp) })
		require.NoError(t, err)
		errs := grouped(t, e, 10, apples(1, 2, 3), nil, ctx)
		mustBe(t, errs, nil, hungUp, nil)
		mustHold(t, e, 2, 6)
	})
}

// TestCoalescedUnknown: if the answer to the COMMIT is lost, no buyer is told that it has bought. Buyers
// that were not part of the sale are served again.
func TestCoalescedUnknown(t *testing.T) {
	e := enginetest.Embedded(t)
	var lost atomic.Bool
	err := e.DB.Callback().Raw().After("gorm:raw").Register("lose the answer", func(tx *gorm.DB) {
		if tx.Statement.SQL.String() == "COMMIT" && !lost.Swap(true) {
			_ = tx.AddError(io.ErrUnexpectedEOF)
		}
	})
	require.NoError(t, err)
	errs := grouped(t, e, 3, apples(1, 3, 2))
	mustBe(t, errs, purchase.ErrUnknownOutcome, purchase.ErrSoldOut, purchase.ErrUnknownOutcome)
	mustHold(t, e, 2, 0) // the COMMIT had taken place
}

// TestCoalescedDown: if the leader cannot lock the row, the buyers of its group get the reason, and it
// does not try again.
func TestCoalescedDown(t *testing.T) {
	e := enginetest.Embedded(t)
	errs := grouped(t, e, 3, []purchase.Order{{Product: "moon", Purchaser: "ann", Amount: 1}, {Product: "moon", Purchaser: "bob", Amount: 1}})
	mustBe(t, errs, purchase.ErrNoProduct, purchase.ErrNoProduct)
	var tries atomic.Int64
	err := e.DB.Callback().Query().Before("gorm:query").Register("down", func(tx *gorm.DB) {
		if _, reads := tx.Statement.Dest.(*product.Product); reads {
			tries.Add(1)
			_ = tx.AddError(io.ErrUnexpectedEOF)
		}
	})
	require.NoError(t, err)
	var down *purchase.Unavailable
	for i, err := range grouped(t, e, 3, apples(1, 1, 1)) {
		if !errors.As(err, &down) {
			t.Errorf("buyer %d: %v, want that the database is down", i, err)
		}
	}
	expect.Equal(t, tries.Load(), 1, "questions for the stock")
}
