package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/exercises/kata"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/purchase"
)

type times = deps.Settings

// defaultTimes returns short times: without competitors, a correct buyer never waits.
func defaultTimes() times {
	return times{Wait: 5 * time.Second, LeaseTTL: 10 * time.Second, Poll: 2 * time.Millisecond}
}

// A seller wraps the learner's strategy. It limits the wait, reports a panic as the result of the check, and
// makes each buyer ask as the exercise's scenario says, for example twice.
type seller struct {
	of       *subject
	scenario string
	deps     deps.Deps
	inner    kata.Strategy
}

func (s *subject) seller(d deps.Deps, scenario string) *seller {
	return &seller{s, scenario, d, s.new(kata.NewKit(d))}
}

// Around returns the learner's strategy. The explorer finds the strategy's goroutines by the name of its
// package.
func (s *seller) Around() purchase.Strategy { return s.inner }

// Work implements purchase.Worker and does nothing. The method tells the explorer that the learner's code may
// have several goroutines, so that the explorer waits for all of them.
func (s *seller) Work(ctx context.Context) { <-ctx.Done() }

// Unlocks does nothing. The method tells the explorer that the strategy calls the hook deps.Deps.Unlock, as a
// kata.Kit does.
func (s *seller) Unlocks() {}

// Close closes the learner's strategy if it has a Close method.
func (s *seller) Close() error {
	if c, ok := s.inner.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Buy implements purchase.Strategy.
func (s *seller) Buy(ctx context.Context, o kata.Order) (receipt kata.Receipt, err error) {
	if s.inner == nil {
		return kata.Receipt{}, wrongf("New returns nil; it must return what sells")
	}
	ctx, _, cancel := s.deps.WithWait(ctx)
	defer cancel()
	defer func() {
		p := recover()
		if raised, ok := p.(error); ok && errors.Is(raised, explore.ErrRaised) {
			receipt, err = kata.Receipt{}, raised
		} else if p != nil {
			receipt, err = kata.Receipt{}, wrongf("%s: panic: %v%s", o.Purchaser, p, s.of.panicked(string(debug.Stack())))
		}
	}()
	switch s.scenario {
	case exercises.Again:
		return s.again(ctx, o)
	case exercises.BothWays:
		return s.basket(ctx, o)
	}
	receipt, err = s.inner.Buy(ctx, o)
	return receipt, s.meaning(ctx, err)
}

// again sends a request and drops the answer, like a client that lost its connection. Then it repeats the
// request in another process.
func (s *seller) again(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	o.IdempotencyKey = "key-of-" + o.Purchaser
	first, err := s.inner.Buy(ctx, o)
	if err := s.meaning(ctx, err); err != nil {
		return first, err // nothing was sold, so any later answer is allowed
	}
	second, err := s.of.new(kata.NewKit(s.deps)).Buy(ctx, o)
	if err := s.meaning(ctx, err); err != nil {
		if errors.Is(err, purchase.ErrBusy) { // the client may ask once more
			return kata.Receipt{}, fmt.Errorf("%w: %w", purchase.ErrUnknownOutcome, err)
		}
		return second, err
	}
	return second, nil // the records show which of the two requests sold
}

// basket asks for the product together with another one. Every second buyer names the two in reverse.
func (s *seller) basket(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	other := o
	other.Product, other.Amount = second, 1
	orders, mine := []kata.Order{o, other}, 0
	if n := len(o.Purchaser); n > 0 && (o.Purchaser[n-1]-'0')%2 == 0 {
		orders, mine = []kata.Order{other, o}, 1
	}
	receipts, err := s.buyAll(ctx, orders)
	if err != nil {
		return kata.Receipt{}, err
	}
	if len(receipts) != len(orders) {
		return kata.Receipt{}, wrongf("BuyAll of %d orders returned %d receipts and no error", len(orders), len(receipts))
	}
	return receipts[mine], nil
}

func (s *seller) buyAll(ctx context.Context, orders []kata.Order) ([]kata.Receipt, error) {
	b, ok := s.inner.(kata.Basket)
	if !ok {
		return nil, wrongf("what New returns has no method BuyAll(ctx, orders) ([]Receipt, error)")
	}
	receipts, err := b.BuyAll(ctx, orders)
	return receipts, s.meaning(ctx, err)
}

// meaning converts an error of the learner's code to one with an outcome, if the database or the end of the
// context caused it. Any other error stays a failure.
func (s *seller) meaning(ctx context.Context, err error) error {
	if err == nil || purchase.OutcomeOf(err) != purchase.Failed || errors.Is(err, explore.ErrRaised) {
		return err
	}
	var known *wrong
	if errors.As(err, &known) {
		return err
	}
	if meant := purchase.DatabaseError(ctx, "buy", err); purchase.OutcomeOf(meant) != purchase.Failed || ctx.Err() != nil {
		return meant
	}
	return wrongf("Buy returned an error that is none of kata.ErrSoldOut, ErrBusy, ErrLockLost, ErrUnknownOutcome: %s", oneLine(err.Error()))
}
