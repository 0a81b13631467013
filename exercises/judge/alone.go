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
	e.Redlock = e.Redlock[:s.further()]
	for _, store := range stores(e) {
		if wrap != nil {
			store.AddHook(wrap)
		}
	}
	return e, stocked(e.Admin.WithContext(ctx))
}

// further is how many stores there are beside Redis. Each is a node that the shop has for Redlock.
func (s *subject) further() int {
	if s.exercise.Second {
		return 1
	}
	return 0
}

// stores are kata.Kit.Stores, of an engine that has so many nodes as are further.
func stores(e *engine.Engine) []kata.Store { return kata.NewKit(onengine.Deps(e)).Stores }

// stocked puts the products there, and a sale of the bystander.
func stocked(db *gorm.DB) error {
	r := purchase.Receipt{Product: bystander, Purchaser: "somebody", Amount: 2, Left: 5, Strategy: kata.Name}
	return errors.Join(product.Put(db, first, 3), product.Put(db, second, 3), product.Put(db, bystander, 7),
		product.Take(db, bystander, 2), purchase.Insert(db.Statement.Context, db, "", time.Now(), &r))
}

// A book is what the database has: each column of each row of each table, and the bystander's
// keys in Redis. Others' keys are the learner's own to use.
type book map[string]string

// The two tables of the shop; any other one has its rows in the book as they are.
const (
	shelf   = "product"
	records = "purchase_history"
)

func read(ctx context.Context, e *engine.Engine) (book, error) {
	b, db := book{}, e.Admin.WithContext(ctx)
	tables, err := db.Migrator().GetTables()
	for _, table := range tables {
		if strings.HasPrefix(table, "sqlite_") { // the database's own
			continue
		}
		b["the table "+table] = ""
		var rows []map[string]any
		err = errors.Join(err, db.Table(table).Find(&rows).Error)
		for n, row := range rows {
			b.enter(table, n, row)
		}
	}
	for i, store := range stores(e) {
		keys, errs := store.Keys(ctx, "*"+bystander+"*").Result()
		err = errors.Join(err, errs)
		for _, key := range keys {
			b["the key "+key+" in "+[]string{"Redis", "the second store"}[i]] = ""
		}
	}
	return b, err
}

// enter enters a row, the n-th that was read of its table.
func (b book) enter(table string, n int, row map[string]any) {
	what := fmt.Sprintf("row %d of %s", n+1, table)
	switch table {
	case shelf:
		what = fmt.Sprint(row["name"])
	case records:
		text := fmt.Sprintf("%v of %v for %v", row["amount"], row["product_name"], row["purchaser"])
		for _, column := range slices.Sorted(maps.Keys(row)) {
			if !slices.Contains([]string{"id", "amount", "product_name", "purchaser"}, column) {
				text += fmt.Sprintf(", %s %v", column, row[column])
			}
		}
		b[fmt.Sprintf("record %v", row["id"])] = text
		return
	}
	for column, value := range row {
		if column == "amount" {
			column = "stock"
		}
		b["the "+column+" of "+what] = fmt.Sprint(value)
	}
}

// counters are the columns of a product's row that a buyer of it may raise, sold to or not.
func counters(product string) []string {
	return []string{"the version of " + product, "the fence of " + product}
}

// changes are the entries in which two books differ, but for those expected.
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
			all = append(all, key+inBrackets(was)+" is gone")
		case !had:
			all = append(all, key+inBrackets(is)+" is new")
		default:
			all = append(all, fmt.Sprintf("%s was %s and is %s", key, was, is))
		}
	}
	return strings.Join(all, "; ")
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
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
		if err := s.bought(ctx, e, o, step.want, seller.Buy); err != nil {
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
func (s *subject) bought(ctx context.Context, e *engine.Engine, o kata.Order, want purchase.Outcome, buy func(context.Context, kata.Order) (kata.Receipt, error)) error {
	before, err := read(ctx, e)
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
	after, readErr := read(ctx, e)
	if readErr != nil {
		return readErr
	}
	asks := fmt.Sprintf("%s asks, alone, for %d of %s units", o.Purchaser, o.Amount, before["the stock of "+o.Product])
	if got := purchase.OutcomeOf(err); got != want {
		return wrongf("%s, and is answered %s instead of %s%s", asks, got, want, because(err))
	}
	record := fmt.Sprintf("record %d", receipt.ID)
	expected := counters(o.Product)
	if want == purchase.Sold {
		expected = append(expected, record, "the stock of "+o.Product)
		var was, is int64
		_, _ = fmt.Sscan(before["the stock of "+o.Product], &was)
		_, _ = fmt.Sscan(after["the stock of "+o.Product], &is)
		if is != was-o.Amount {
			return wrongf("%s, and then %d are left", asks, is)
		}
		if text, sold := after[record], fmt.Sprintf("%d of %s for %s", o.Amount, o.Product, o.Purchaser); !strings.HasPrefix(text, sold+", ") {
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
func (s *subject) aloneWithBasket(ctx context.Context, e *engine.Engine, seller *seller) error {
	b, ok := seller.inner.(kata.Basket)
	if !ok {
		return wrongf("what New returns has no method BuyAll(ctx, orders) ([]Receipt, error)")
	}
	if err := errors.Join(product.Put(e.Admin, first, 2), product.Put(e.Admin, second, 1)); err != nil {
		return err
	}
	for i, want := range []purchase.Outcome{purchase.Sold, purchase.SoldOut} {
		name := fmt.Sprintf("buyer-%d", 4+i)
		before, err := read(ctx, e)
		if err != nil {
			return err
		}
		var receipts []kata.Receipt
		err = s.within(name+", alone,", func() (err error) {
			receipts, err = b.BuyAll(ctx, []kata.Order{{Product: first, Purchaser: name, Amount: 1}, {Product: second, Purchaser: name, Amount: 1}})
			return seller.meaning(ctx, err)
		})
		var known *wrong
		if errors.As(err, &known) {
			return err
		}
		after, readErr := read(ctx, e)
		if readErr != nil {
			return readErr
		}
		asks := fmt.Sprintf("%s asks, alone, for a basket of 1 %s and 1 %s, of which %s and %s are left", name, first, second, before["the stock of "+first], before["the stock of "+second])
		if got := purchase.OutcomeOf(err); got != want {
			return wrongf("%s, and is answered %s instead of %s%s", asks, got, want, because(err))
		}
		expected := append(counters(first), counters(second)...)
		if want == purchase.Sold {
			expected = append(expected, "the stock of "+first, "the stock of "+second)
			for _, r := range receipts {
				expected = append(expected, fmt.Sprintf("record %d", r.ID))
			}
		}
		if other := before.changes(after, expected...); other != "" {
			return wrongf("%s, is told %s, and more is changed than that: %s", asks, want, other)
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
