package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/exercises/kata"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// The product on sale, and another one that must not change.
const (
	first     = "apple"
	second    = "apricot"
	bystander = "nobody's" // a product that no buyer asks for
)

// aloneWithin is how long one buyer without competitors may take. Correct code needs far less on any machine;
// the limit is for code that never returns.
const aloneWithin = 10 * time.Second

func (s *subject) open(ctx context.Context, wrap *traffic) (*engine.Engine, error) {
	c := engine.Config{Name: engine.Embedded, Wait: s.settings.Wait, Lease: s.settings.LeaseTTL, Conns: 16}
	if s.further() == 0 {
		c.Needs = []string{string(lockstrategy.NeedsRedis)}
	}
	if wrap != nil {
		c.WrapDB = wrap.connector
	}
	e, err := engine.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	e.Redlock = e.Redlock[:s.further()]
	for _, store := range stores(e) {
		if wrap != nil {
			store.AddHook(wrap)
		}
	}
	return e, stocked(e.Admin.WithContext(ctx))
}

// further returns the number of stores, independent Redis servers, besides the first Redis. The engine, which
// opens the servers, has them as Redlock nodes.
func (s *subject) further() int {
	if s.exercise.Second {
		return 1
	}
	return 0
}

func stores(e *engine.Engine) []kata.Store { return kata.NewKit(onengine.Deps(e)).Stores }

func stocked(db *gorm.DB) error {
	r := purchase.Receipt{Product: bystander, Purchaser: "somebody", Amount: 2, Left: 5, Strategy: kata.Name}
	return errors.Join(product.Put(db, first, 3), product.Put(db, second, 3), product.Put(db, bystander, 7),
		product.Take(db, bystander, 2), purchase.Insert(db.Statement.Context, db, "", time.Now(), &r))
}

func (s *subject) alone(ctx context.Context) (c Check, err error) {
	e, err := s.open(ctx, nil)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	d := onengine.Deps(e)
	d.Settings = s.settings
	for _, store := range stores(e) {
		if err := store.Set(ctx, "lock:"+bystander, "somebody", 0).Err(); err != nil {
			return c, err
		}
	}
	seller := s.seller(d, "")
	for i, step := range []struct {
		units int64
		want  purchase.Outcome
	}{{1, purchase.Sold}, {2, purchase.Sold}, {1, purchase.SoldOut}} {
		o := kata.Order{Product: first, Purchaser: fmt.Sprintf("buyer-%d", i+1), Amount: step.units}
		err := s.bought(ctx, e, step.want, []kata.Order{o}, func() ([]kata.Receipt, error) {
			r, err := seller.Buy(ctx, o)
			return []kata.Receipt{r}, err
		})
		if err != nil {
			return c, err
		}
	}
	if s.exercise.Basket {
		if err := s.aloneWithBasket(ctx, e, seller); err != nil {
			return c, err
		}
	}
	if err := seller.Close(); err != nil {
		return c, wrongf("Close: %v", err)
	}
	return Check{Why: "stock, records and receipts are right, and nothing else has changed"}, s.ended()
}

func (c code) within(who string, fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(aloneWithin):
		return wrongf("%s does not come back, and no other buyer is there%s", who, c.standing())
	}
}

// asks describes in words the order of one buyer without competitors, and the stock before it.
func (b book) asks(orders []kata.Order) string {
	stock := func(i int) string { return b["the stock of "+orders[i].Product] }
	if len(orders) == 1 {
		return fmt.Sprintf("%s asks, alone, for %d of %s units", orders[0].Purchaser, orders[0].Amount, stock(0))
	}
	return fmt.Sprintf("%s asks, alone, for a basket of %d %s and %d %s, of which %s and %s are left",
		orders[0].Purchaser, orders[0].Amount, orders[0].Product, orders[1].Amount, orders[1].Product, stock(0), stock(1))
}

// bought lets one buyer buy, and checks that the content of the servers changes only as the outcome `want`
// requires.
func (s *subject) bought(ctx context.Context, e *engine.Engine, want purchase.Outcome, orders []kata.Order, buy func() ([]kata.Receipt, error)) error {
	before, err := read(ctx, e)
	if err != nil {
		return err
	}
	var receipts []kata.Receipt
	err = s.within(orders[0].Purchaser+", alone,", func() (err error) {
		receipts, err = buy()
		return err
	})
	var known *wrong
	if errors.As(err, &known) {
		return err
	}
	after, readErr := read(ctx, e)
	if readErr != nil {
		return readErr
	}
	asks := before.asks(orders)
	if got := purchase.OutcomeOf(err); got != want {
		return wrongf("%s, and is answered %s instead of %s%s", asks, got, want, because(err))
	}
	if want == purchase.Sold && len(receipts) != len(orders) {
		return wrongf("%s, and gets %d receipts", asks, len(receipts))
	}
	var expected []string
	for i, o := range orders {
		expected = append(expected, counters(o.Product)...)
		if want != purchase.Sold {
			continue
		}
		record := fmt.Sprintf("record %d", receipts[i].ID)
		expected = append(expected, record, "the stock of "+o.Product)
		var was, is int64
		_, _ = fmt.Sscan(before["the stock of "+o.Product], &was)
		_, _ = fmt.Sscan(after["the stock of "+o.Product], &is)
		if is != was-o.Amount {
			return wrongf("%s, and then %d are left", asks, is)
		}
		if text, sold := after[record], fmt.Sprintf("%d of %s for %s", o.Amount, o.Product, o.Purchaser); !strings.HasPrefix(text, sold+", ") {
			return wrongf("%s; the receipt names record %d, which is %q and should be %q", asks, receipts[i].ID, text, sold)
		}
	}
	if other := before.changes(after, expected...); other != "" {
		return wrongf("%s, and more is changed than the order asks for: %s", asks, other)
	}
	return nil
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + oneLine(err.Error())
}

// aloneWithBasket lets one buyer buy a basket (orders for two products), and then ask for one with a product
// that has too few units.
func (s *subject) aloneWithBasket(ctx context.Context, e *engine.Engine, seller *seller) error {
	if err := errors.Join(product.Put(e.Admin, first, 2), product.Put(e.Admin, second, 1)); err != nil {
		return err
	}
	for i, want := range []purchase.Outcome{purchase.Sold, purchase.SoldOut} {
		name := fmt.Sprintf("buyer-%d", 4+i)
		orders := []kata.Order{{Product: first, Purchaser: name, Amount: 1}, {Product: second, Purchaser: name, Amount: 1}}
		if err := s.bought(ctx, e, want, orders, func() ([]kata.Receipt, error) { return seller.buyAll(ctx, orders) }); err != nil {
			return err
		}
	}
	return nil
}

// endsWithin is how long goroutines that the learner's Buy has started may go on after Buy and Close.
const endsWithin = 5 * time.Second

// ended returns an error if a goroutine of the learner's code is left.
func (c code) ended() error {
	for deadline := time.Now().Add(endsWithin); ; time.Sleep(5 * time.Millisecond) {
		at := c.standing()
		if at == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return wrongf("a goroutine that the code has begun does not end when its buyers have gone%s", at)
		}
	}
}
