package purchase_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// shelf is a stock whose reads begin and end when the test says so.
type shelf struct {
	mu    sync.Mutex
	left  int64
	reads int           // reads that have begun
	took  int           // orders that reached the strategy
	begun chan struct{} // nil: a read ends at once
	end   chan struct{}
	err   error
}

func (s *shelf) set(left int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = left
}

func (s *shelf) counts() (reads, took int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads, s.took
}

// read returns the stock at the beginning of the read.
func (s *shelf) read(ctx context.Context, _ string) (int64, error) {
	s.mu.Lock()
	s.reads++
	left, err, begun, end := s.left, s.err, s.begun, s.end
	s.mu.Unlock()
	if begun == nil {
		return left, err
	}
	begun <- struct{}{}
	select {
	case <-end:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	return left, err
}

// Buy sells from the shelf, as a strategy does.
func (s *shelf) Buy(_ context.Context, o purchase.Order) (purchase.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took++
	if s.left < o.Amount {
		return purchase.Receipt{}, purchase.ErrSoldOut
	}
	s.left -= o.Amount
	return purchase.Receipt{Product: o.Product, Amount: o.Amount, Left: s.left}, nil
}

func units(n int64) purchase.Order {
	return purchase.Order{Product: "apple", Purchaser: "ann", Amount: n}
}

// buyers sends orders of one unit, each from its own goroutine.
func buyers(ctx context.Context, s purchase.Strategy, n int) (outcomes chan purchase.Outcome) {
	outcomes = make(chan purchase.Outcome, n)
	for range n {
		go func() {
			_, err := s.Buy(ctx, units(1))
			outcomes <- purchase.OutcomeOf(err)
		}()
	}
	return outcomes
}

func want(t *testing.T, outcomes chan purchase.Outcome, outcome purchase.Outcome) {
	t.Helper()
	synctest.Wait()
	for range cap(outcomes) {
		select {
		case got := <-outcomes:
			expect.Equal(t, got, outcome)
		default:
			t.Fatal("a buyer is not answered")
		}
	}
}

// soldOut returns a check of an empty shelf, which the check already knows to be empty.
func soldOut(t *testing.T) (*shelf, purchase.Strategy) {
	t.Helper()
	s := &shelf{}
	checked := purchase.NewSoldOutCheck(s.read, time.Second).Before(s)
	want(t, buyers(t.Context(), checked, 1), purchase.SoldOut)
	if reads, took := s.counts(); reads != 0 || took != 1 {
		t.Fatalf("%d reads before anything was refused, %d orders, want 0 and 1", reads, took)
	}
	s.begun, s.end = make(chan struct{}, 100), make(chan struct{})
	return s, checked
}

// TestReadBeginsLater: a read does not answer a buyer that arrives during it. Here the read has
// seen the empty shelf from before a restock. All waiting buyers share the next read.
func TestReadBeginsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, checked := soldOut(t)
		before := buyers(t.Context(), checked, 1)
		<-s.begun
		s.set(100)
		after := buyers(t.Context(), checked, 50)
		synctest.Wait()
		if reads, _ := s.counts(); reads != 1 {
			t.Fatalf("%d reads at once, want 1", reads)
		}
		s.end <- struct{}{}
		want(t, before, purchase.SoldOut)
		if reads, _ := s.counts(); reads != 2 {
			t.Fatalf("%d reads: a read from before the restock answered a buyer that came after it", reads)
		}
		<-s.begun
		s.end <- struct{}{}
		want(t, after, purchase.Sold)
		if reads, took := s.counts(); reads != 2 || took != 51 {
			t.Errorf("%d reads, %d orders; want 2 and 51", reads, took)
		}
		want(t, buyers(t.Context(), checked, 1), purchase.Sold) // the check reads nothing while there are enough units
		if reads, _ := s.counts(); reads != 2 {
			t.Errorf("%d reads of a shelf that has enough", reads)
		}
	})
}

// TestCheckHangsUp: the first buyer disconnects and leaves at once. The other buyers that wait for
// the same read stay.
func TestCheckHangsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, checked := soldOut(t)
		ctx, cancel := context.WithCancel(t.Context())
		hangsUp := buyers(ctx, checked, 1)
		<-s.begun
		alsoHangsUp := buyers(ctx, checked, 1) // the first to wait for the next read
		synctest.Wait()
		stays := buyers(t.Context(), checked, 1)
		synctest.Wait()
		cancel()
		want(t, hangsUp, purchase.Failed)
		want(t, alsoHangsUp, purchase.Failed)
		s.end <- struct{}{}
		<-s.begun
		s.end <- struct{}{}
		want(t, stays, purchase.SoldOut)
	})
}

// TestCheckKnowsNothing: if the stock cannot be read, or not in time, the strategy decides, and the
// next buyer need not wait for the read.
func TestCheckKnowsNothing(t *testing.T) {
	for name, end := range map[string]func(s *shelf){
		"an error": func(s *shelf) { s.err, s.begun = errors.New("the database is down"), nil },
		"no word":  func(*shelf) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, checked := soldOut(t)
				end(s)
				s.set(5)
				for range 2 {
					expect.NoError(t, expect.ErrorOf(checked.Buy(t.Context(), units(1))))
				}
				if reads, took := s.counts(); reads != 1 || took != 3 {
					t.Errorf("%d reads, %d orders; want 1 and 3", reads, took)
				}
			})
		})
	}
}

// TestCheckUnits: an order above the stock is sold out, and a smaller one is sold. The check reads
// for orders above the remaining stock.
func TestCheckUnits(t *testing.T) {
	s := &shelf{left: 3}
	checked := purchase.NewSoldOutCheck(s.read, time.Second).Before(s)
	for i, step := range []struct {
		units int64
		want  error
		reads int // number of reads so far
		took  int
	}{
		{5, purchase.ErrSoldOut, 0, 1},
		{4, nil, 0, 2}, // unknown so far; s.left is raised below
		{5, purchase.ErrSoldOut, 1, 2},
		{3, nil, 1, 3}, // no order of three was refused
		{2, nil, 1, 4},
		{1, purchase.ErrSoldOut, 1, 5},
		{1, purchase.ErrSoldOut, 2, 5},
	} {
		if i == 1 {
			s.left = 4 + 3 + 2 // a restock
		}
		if i == 2 {
			s.left = 4 // another buyer buys
		}
		if i == 3 {
			s.left = 5
		}
		_, err := checked.Buy(t.Context(), units(step.units))
		if reads, took := s.counts(); !errors.Is(err, step.want) || reads != step.reads || took != step.took {
			t.Errorf("step %d: %v after %d reads, %d orders; want %v, %d, %d", i, err, reads, took, step.want, step.reads, step.took)
		}
	}
	if _, err := checked.Buy(t.Context(), units(1)); err == nil || err.Error() != "sold out: 0 left" {
		t.Errorf("%v, want what a strategy says", err)
	}
}

// TestCheckKnownKey: a retry gets its sale as the answer, although the product is sold out.
func TestCheckKnownKey(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		require.NoError(t, product.Put(e.DB, "apple", 1))
		check := purchase.NewSoldOutCheck(func(ctx context.Context, name string) (int64, error) {
			p, err := product.ByName(e.Admin.WithContext(ctx), name)
			return p.Amount, err
		}, time.Minute)
		shop := purchase.NewIdempotent(check.Before(section{purchase.Section{DB: e.DB, Strategy: "none", Now: time.Now}}), e.DB)
		keyed := order()
		keyed.IdempotencyKey = "a-key"
		sold, err := shop.Buy(t.Context(), keyed)
		require.NoError(t, err)
		for range 2 { // the strategy refuses the first buyer, and the check the second buyer
			expect.ErrorIs(t, expect.ErrorOf(shop.Buy(t.Context(), order())), purchase.ErrSoldOut)
		}
		again, err := shop.Buy(t.Context(), keyed)
		if err != nil || again.ID != sold.ID || !again.Replayed {
			t.Errorf("%+v, %v; want the sale %d again", again, err, sold.ID)
		}
		other := keyed
		other.Amount = 2
		expect.ErrorIs(t, expect.ErrorOf(shop.Buy(t.Context(), other)), purchase.ErrKeyReused)
		unknown := order()
		unknown.Product = "moon"
		expect.ErrorIs(t, expect.ErrorOf(shop.Buy(t.Context(), unknown)), purchase.ErrNoProduct)
	})
}

// section is the naive section as a strategy.
type section struct{ purchase.Section }

func (s section) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	return s.Sell(ctx, o, 0)
}
