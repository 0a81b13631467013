package copies

import (
	"context"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/rlock"
)

// TestSpring23549: a synchronized block inside a method with @Transactional. The block ends before
// the proxy around the method commits.
// https://github.com/spring-projects/spring-framework/issues/23549
func TestSpring23549(t *testing.T) {
	build := func(inside bool) func(d lockstrategy.Deps) purchase.Strategy {
		return func(d lockstrategy.Deps) purchase.Strategy { return &goodsService{deps: d, inside: inside} }
	}
	oneProcess := explore.Config{Bound: -1, Shared: true}
	if control := search(t, "@Transactional inside synchronized", oneProcess, build(false)); control.Violations > 0 {
		t.Errorf("put right: %s", control.Witness.Schedule)
	}
	result := search(t, "synchronized inside @Transactional", oneProcess, build(true))
	if result.Witness == nil || result.Witness.Verdict != verdict.Oversold {
		t.Fatalf("synchronized inside @Transactional: %d violations, want some that oversell", result.Violations)
	}
	show(t, result.Witness)
}

// goodsService is the code in the report: read the stock, and if there is some, reduce it by one
// and add an order.
type goodsService struct {
	deps   lockstrategy.Deps
	inside bool // the lock is acquired and released inside the transaction

	this sync.Mutex
}

func (s *goodsService) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	if !s.inside {
		s.this.Lock()
		defer s.this.Unlock()
	}
	err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		if s.inside {
			s.this.Lock()
			defer s.this.Unlock()
		}
		p, err := product.ByName(tx, o.Product)
		if err == nil {
			err = purchase.Check(p, o)
		}
		if err == nil {
			err = product.Take(tx, o.Product, o.Amount)
		}
		if err != nil {
			return err
		}
		receipt = purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount, Left: p.Amount - o.Amount, Strategy: "copy"}
		return purchase.Insert(ctx, tx, "", s.deps.Now(), &receipt)
	})
	return receipt, err
}

// TestRedisson2183: the same bug with a lock that works between processes, and a total that is
// read, computed and written. https://github.com/redisson/redisson/issues/2183
func TestRedisson2183(t *testing.T) {
	build := func(inside bool) func(d lockstrategy.Deps) purchase.Strategy {
		return func(d lockstrategy.Deps) purchase.Strategy { return testMe{d, rlock.New(d.Redis), inside} }
	}
	everything := explore.Config{Bound: -1}
	if control := search(t, "@Transactional inside RLock", everything, build(false)); control.Violations > 0 {
		t.Errorf("put right: %s", control.Witness.Schedule)
	}
	result := search(t, "RLock inside @Transactional", everything, build(true))
	if result.Witness == nil || result.Witness.Verdict != verdict.Oversold {
		t.Fatalf("RLock inside @Transactional: %d violations, want some that oversell", result.Violations)
	}
	show(t, result.Witness)
}

// testMe is the code in the report: read the total, compute, write.
type testMe struct {
	deps   lockstrategy.Deps
	locks  *rlock.Client
	inside bool
}

func (s testMe) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, err error) {
	locked := func(do func() error) error {
		lease, err := s.locks.NewLock("apple").Lock(ctx)
		if err != nil {
			return err
		}
		defer lease.Unlock(context.WithoutCancel(ctx))
		return do()
	}
	sell := func(tx *gorm.DB) (err error) {
		receipt, err = section(ctx, s.deps, tx, o)
		return err
	}
	if s.inside {
		err = purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error { return locked(func() error { return sell(tx) }) })
	} else {
		err = locked(func() error { return purchase.InTx(ctx, s.deps.DB, sell) })
	}
	return receipt, err
}

// Close ends the lock's subscription.
func (s testMe) Close() error { return s.locks.Close() }
