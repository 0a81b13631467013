package orderstream

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// BatchSize is the maximum number of orders that one transaction writes.
const BatchSize = 500

// moveBatch moves the oldest orders to the database, answers the buyers that wait in this process,
// and returns how many orders it found.
func (m *Mover) moveBatch(ctx context.Context, product string) (found int, _ error) {
	if err := m.moving.Acquire(ctx, 1); err != nil {
		return 0, fmt.Errorf("wait for the end of a restock: %w", context.Cause(ctx))
	}
	defer m.moving.Release(1)
	entries, err := m.deps.Redis.XRangeN(ctx, m.Stream(product), "-", "+", BatchSize).Result()
	if err != nil {
		return 0, deps.Failed(deps.Redis, err)
	}
	orders := make([]admitted, 0, len(entries))
	for _, entry := range entries {
		o, err := readEntry(m.Strategy, product, entry)
		if err != nil {
			return 0, err
		}
		orders = append(orders, o)
	}
	state, err := m.write(ctx, product, orders)
	if err != nil {
		return 0, err
	}
	if err := m.answerDecided(ctx, product, state); err != nil || len(orders) == 0 {
		return 0, err
	}
	return len(orders), m.remove(ctx, product, orders)
}

type admitted struct {
	id      entryID
	entry   string
	key     string
	called  time.Time
	receipt purchase.Receipt // has the record's id once the order is sold
	sold    bool             // the database has sold its units
}

func readEntry(strategy, product string, entry redis.XMessage) (o admitted, err error) {
	text := func(name string) string {
		value, _ := entry.Values[name].(string)
		return value
	}
	o = admitted{entry: entry.ID, key: text("key")}
	o.receipt = purchase.Receipt{Product: product, Purchaser: text("purchaser"), Strategy: strategy}
	if o.id, err = parseEntryID(entry.ID); err == nil {
		o.receipt.Amount, err = strconv.ParseInt(text("units"), 10, 64)
	}
	called, wrong := strconv.ParseInt(text("called"), 10, 64)
	// An order with a negative amount would add units to the stock, although its record is a sale.
	if o.called = time.UnixMicro(called); err != nil || wrong != nil || o.receipt.Amount < 0 {
		return o, fmt.Errorf("entry %s of the stream of %q is not this shop's: %v", entry.ID, product, entry.Values)
	}
	return o, nil
}

// state contains a product's data that one transaction read from the database.
type state struct {
	last  entryID                     // the database has decided on this entry and all earlier ones
	entry string                      // last, in the notation of Redis
	left  int64                       // units left
	sold  map[string]purchase.Receipt // the sales under the keys that were looked up
}

func stateOf(p product.Product) (d state, err error) {
	d = state{entry: p.LastEntry, left: p.Amount, sold: map[string]purchase.Receipt{}}
	if d.last, err = parseEntryID(p.LastEntry); err != nil {
		return d, fmt.Errorf("last_entry of %q: %w", p.Name, err)
	}
	return d, nil
}

// write sells or refuses the orders that the database has not decided on, oldest first. For the other
// orders it looks up whether they were sold.
func (m *Mover) write(ctx context.Context, name string, orders []admitted) (d state, _ error) {
	if len(orders) == 0 { // another process has moved all orders, so this one need not lock the row
		p, err := product.ByName(m.deps.DB.WithContext(ctx), name)
		if err != nil {
			return d, purchase.DatabaseError(ctx, "read the stock", err)
		}
		if d, err = stateOf(p); err != nil || len(m.decided(name, d.last)) == 0 {
			return d, err
		}
		// Another process has moved the orders of buyers that wait here. These sales must survive a
		// crash of the database, so they are read again in a transaction that writes.
	}
	err := purchase.InLockingTx(ctx, m.deps.DB, func(tx *gorm.DB) error {
		p, err := product.ForUpdate(tx, name)
		if err != nil {
			return purchase.DatabaseError(ctx, "read the stock for update", err)
		}
		if d, err = stateOf(p); err != nil {
			return err
		}
		keys := make([]string, 0, len(orders))
		for _, o := range orders {
			keys = append(keys, o.key)
		}
		if d.sold, err = purchase.SoldUnder(tx, keys); err != nil {
			return purchase.DatabaseError(ctx, "look up the keys", err)
		}
		sales, saleKeys := d.decide(orders, m.deps.Now())
		p.LastEntry = d.entry
		if err := m.deps.InsertAll(ctx, tx, saleKeys, sales); err != nil {
			return err
		}
		for i, key := range saleKeys {
			d.sold[key] = *sales[i] // the receipt has its id now
		}
		return purchase.DatabaseError(ctx, "write the stock", product.SetAmountAfter(tx, p.ID, d.left, p.LastEntry))
	})
	return d, err
}

// decide sells to each order that comes after the last decided entry, while units are left. It sets the field
// `sold` of every order that was sold, now or before. It returns the new sales with their Idempotency-Keys.
func (d *state) decide(orders []admitted, now time.Time) (sales []*purchase.Receipt, keys []string) {
	for i := range orders {
		o := &orders[i]
		_, recorded := d.sold[o.key]
		if !o.id.after(d.last) { // decided before, but still in the stream
			o.sold = recorded
			continue
		}
		d.last, d.entry = o.id, o.entry
		if recorded || o.receipt.Amount > d.left { // its key was used before, or too few units are left
			continue
		}
		d.left -= o.receipt.Amount
		o.receipt.Left, o.sold = d.left, true
		o.receipt.Waited = max(0, now.Sub(o.called))
		sales, keys = append(sales, &o.receipt), append(keys, o.key)
		d.sold[o.key] = o.receipt
	}
	return sales, keys
}

// answerDecided answers the buyers of this process whose order the database has sold or refused, in this
// batch or in one of another process. The transaction that read d has also written and committed. So the
// sales of other processes that it read are on the disk too.
func (m *Mover) answerDecided(ctx context.Context, product string, d state) error {
	decided := m.decided(product, d.last)
	var elsewhere []string
	for _, w := range decided {
		if _, here := d.sold[w.order.IdempotencyKey]; !here {
			elsewhere = append(elsewhere, w.order.IdempotencyKey)
		}
	}
	sold, err := purchase.SoldUnder(m.deps.DB.WithContext(ctx), elsewhere)
	if err != nil {
		return purchase.DatabaseError(ctx, "look up the sales of other processes", err)
	}
	maps.Copy(d.sold, sold)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range decided {
		if _, waits := m.waiting[product][w]; waits { // otherwise the buyer has left, or another batch has answered it
			w.answer <- d.answer(w)
			delete(m.waiting[product], w)
		}
	}
	return nil
}

// decided returns the buyers of this process that wait for the entry `last` or an earlier one.
func (m *Mover) decided(product string, last entryID) (decided []*Waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for w := range m.waiting[product] {
		if id, err := parseEntryID(w.entry); err == nil && !id.after(last) {
			decided = append(decided, w)
		}
	}
	return decided
}

// answer returns the answer for a buyer on whose entry the database has decided. If there is no record, the
// answer is "sold out" only if too few units are left. With enough units left, Redis may have lost the entry,
// so the outcome is unknown.
func (d state) answer(w *Waiter) Answer {
	o := w.order
	receipt, sold := d.sold[o.IdempotencyKey]
	switch {
	case sold && (receipt.Product != o.Product || receipt.Purchaser != o.Purchaser || receipt.Amount != o.Amount):
		return Answer{Err: purchase.ErrKeyReused}
	case sold:
		return Answer{Receipt: receipt}
	case o.Amount > d.left:
		return Answer{Err: fmt.Errorf("%w: the database has refused entry %s", purchase.ErrSoldOut, w.entry)}
	}
	return Answer{Err: fmt.Errorf("%w: the database is past entry %s and has no record of it; Redis has forgotten the order", purchase.ErrUnknownOutcome, w.entry)}
}

// remove deletes the entries of the orders from the stream. If one of the orders was refused, the script also
// deletes the stock in Redis, and the next buyer loads it again.
func (m *Mover) remove(ctx context.Context, product string, orders []admitted) error {
	args := make([]any, 0, 1+3*len(orders))
	args = append(args, product)
	for _, o := range orders {
		unsold := o.receipt.Amount
		if o.sold {
			unsold = 0
		}
		args = append(args, o.entry, o.key, unsold)
	}
	return deps.Failed(deps.Redis, m.settle.Run(ctx, m.deps.Redis, m.All(product), args...).Err())
}
