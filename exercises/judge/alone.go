package judge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/exercises/kata"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// What is sold, and what stands beside it.
const (
	first     = "apple"
	second    = "apricot"
	bystander = "nobody's" // that nobody asks for
)

// aloneWithin is how long one buyer may take whom nobody disturbs. It is far above what any
// machine needs, and bounds code that never ends.
const aloneWithin = 10 * time.Second

// open opens an engine of the judge's own, with its products.
func (s *subject) open(ctx context.Context, wrap *traffic) (*engine.Engine, error) {
	c := engine.Config{Name: engine.Embedded, Wait: s.settings.Wait, Lease: s.settings.LeaseTTL, Conns: 16}
	if wrap != nil {
		c.WrapDB = wrap.connector
	}
	e, err := engine.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	if wrap != nil {
		e.Redis.AddHook(wrap)
	}
	return e, stocked(e.Admin.WithContext(ctx))
}

// stocked puts the products there, and a sale of the bystander.
func stocked(db *gorm.DB) error {
	r := purchase.Receipt{Product: bystander, Purchaser: "somebody", Amount: 2, Left: 5, Strategy: kata.Name}
	return errors.Join(product.Put(db, first, 3), product.Put(db, second, 3), product.Put(db, bystander, 7),
		product.Take(db, bystander, 2), purchase.Insert(db.Statement.Context, db, "", time.Now(), &r))
}

// A book is all that the database has, row by row.
type book map[string]string

func read(db *gorm.DB) (book, error) {
	b := book{}
	products, err := product.List(db)
	for _, p := range products {
		b["the stock of "+p.Name] = fmt.Sprint(p.Amount)
		b["the units ever put on sale of "+p.Name] = fmt.Sprint(p.Stocked)
	}
	records, errs := purchase.Page(db, "", 0, purchase.MaxPage)
	for _, r := range records {
		b[fmt.Sprintf("record %d", r.ID)] = fmt.Sprintf("%d of %s for %s", r.Amount, r.ProductName, r.Purchaser)
	}
	return b, errors.Join(err, errs)
}

// changes are the rows in which two books differ, but for those expected.
func (b book) changes(after book, expected ...string) string {
	var all []string
	keys := maps.Clone(b)
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		was, had := b[key]
		is, has := after[key]
		switch {
		case was == is && had == has || slices.Contains(expected, key):
		case !has:
			all = append(all, fmt.Sprintf("%s (%s) is gone", key, was))
		case !had:
			all = append(all, fmt.Sprintf("%s (%s) is new", key, is))
		default:
			all = append(all, fmt.Sprintf("%s was %s and is %s", key, was, is))
		}
	}
	return strings.Join(all, "; ")
}

// alone sells to one buyer after the other, whom nobody disturbs.
func (s *subject) alone(ctx context.Context) (c Check, err error) {
	e, err := s.open(ctx, nil)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	d := onengine.Deps(e)
	d.Settings = s.settings
	seller := s.seller(d, "")
	for i, step := range []struct {
		units int64
		want  purchase.Outcome
	}{{1, purchase.Sold}, {2, purchase.Sold}, {1, purchase.SoldOut}} {
		o := kata.Order{Product: first, Purchaser: fmt.Sprintf("buyer-%d", i+1), Amount: step.units}
		if err := s.bought(ctx, e.Admin, o, step.want, seller.Buy); err != nil {
			return c, err
		}
	}
	if s.exercise.Basket {
		if err := s.aloneWithBasket(ctx, e.Admin, seller); err != nil {
			return c, err
		}
	}
	if err := seller.Close(); err != nil {
		return c, wrongf("Close: %v", err)
	}
	return Check{Why: "stock, records and receipts are what was asked for, and nothing else is changed"}, s.ended()
}

// within runs fn, and gives up on it when that takes too long.
func (s *subject) within(who string, fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(aloneWithin):
		return wrongf("%s does not come back, and nobody else is there%s", who, s.standing())
	}
}

// bought has one buyer ask, and compares the database before and after.
func (s *subject) bought(ctx context.Context, admin *gorm.DB, o kata.Order, want purchase.Outcome, buy func(context.Context, kata.Order) (kata.Receipt, error)) error {
	before, err := read(admin)
	if err != nil {
		return err
	}
	var receipt kata.Receipt
	err = s.within(o.Purchaser+", alone,", func() (err error) {
		receipt, err = buy(ctx, o)
		return err
	})
	var known *wrong
	if errors.As(err, &known) {
		return err
	}
	after, readErr := read(admin)
	if readErr != nil {
		return readErr
	}
	asks := fmt.Sprintf("%s asks, alone, for %d of %s units", o.Purchaser, o.Amount, before["the stock of "+o.Product])
	if got := purchase.OutcomeOf(err); got != want {
		return wrongf("%s, and is answered %s instead of %s%s", asks, got, want, because(err))
	}
	record := fmt.Sprintf("record %d", receipt.ID)
	expected := []string{}
	if want == purchase.Sold {
		expected = []string{record, "the stock of " + o.Product}
		var was, is int64
		_, _ = fmt.Sscan(before["the stock of "+o.Product], &was)
		_, _ = fmt.Sscan(after["the stock of "+o.Product], &is)
		if is != was-o.Amount {
			return wrongf("%s, and then %d are left", asks, is)
		}
		if text, sold := after[record], fmt.Sprintf("%d of %s for %s", o.Amount, o.Product, o.Purchaser); text != sold {
			return wrongf("%s; the receipt names record %d, which is %q and should be %q", asks, receipt.ID, text, sold)
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

// aloneWithBasket: all of a basket is sold, or nothing.
func (s *subject) aloneWithBasket(ctx context.Context, admin *gorm.DB, seller *seller) error {
	b, ok := seller.inner.(kata.Basket)
	if !ok {
		return wrongf("what New returns has no method BuyAll(ctx, orders) ([]Receipt, error)")
	}
	if err := errors.Join(product.Put(admin, first, 2), product.Put(admin, second, 1)); err != nil {
		return err
	}
	for i, want := range []purchase.Outcome{purchase.Sold, purchase.SoldOut} {
		name := fmt.Sprintf("buyer-%d", 4+i)
		before, err := read(admin)
		if err != nil {
			return err
		}
		err = s.within(name+", alone,", func() error {
			_, err := b.BuyAll(ctx, []kata.Order{{Product: first, Purchaser: name, Amount: 1}, {Product: second, Purchaser: name, Amount: 1}})
			return seller.meaning(ctx, err)
		})
		var known *wrong
		if errors.As(err, &known) {
			return err
		}
		after, readErr := read(admin)
		if readErr != nil {
			return readErr
		}
		asks := fmt.Sprintf("%s asks, alone, for a basket of 1 %s and 1 %s, of which %s and %s are left", name, first, second, before["the stock of "+first], before["the stock of "+second])
		if got := purchase.OutcomeOf(err); got != want {
			return wrongf("%s, and is answered %s instead of %s%s", asks, got, want, because(err))
		}
		if want == purchase.SoldOut {
			if other := before.changes(after); other != "" {
				return wrongf("%s, is told sold out, and part of it is sold: %s", asks, other)
			}
		}
	}
	return nil
}

// endsWithin is how long what Buy has begun may outlive it, and Close.
const endsWithin = 5 * time.Second

// ended: no goroutine of the learner's is left.
func (s *subject) ended() error {
	for deadline := time.Now().Add(endsWithin); ; time.Sleep(5 * time.Millisecond) {
		at := s.standing()
		if at == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return wrongf("a goroutine that the code has begun does not end when its buyers have gone%s", at)
		}
	}
}
