package lockstrategy

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

// batch is how many orders one transaction writes, at most.
const batch = 500

// moverPause is how long a mover waits when it has found nothing that its buyers
// wait for, or the database was not there.
const moverPause = 10 * time.Millisecond

// A waiter is a buyer of this process whose order was admitted.
type waiter struct {
	order  purchase.Order
	entry  string
	answer chan answer // of capacity 1
}

// waiters of one product. While there are any a goroutine moves the product's
// orders. Movers of several processes take turns at the product's row, whose
// lock each holds for its batch.
type waiters map[*waiter]struct{}

// await says where the answer for an entry will be, and sees to it that a
// mover runs.
func (s *RedisLua) await(o purchase.Order, entry string) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[o.Product] == nil {
		s.waiting[o.Product] = waiters{}
		go s.move(o.Product)
	}
	w := &waiter{o, entry, make(chan answer, 1)}
	s.waiting[o.Product][w] = struct{}{}
	return w
}

// leave forgets a buyer that has given up.
func (s *RedisLua) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting[w.order.Product], w)
}

// move runs until nobody waits.
func (s *RedisLua) move(product string) {
	for s.awaited(product) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*s.deps.Settings.Wait)
		found, err := s.moveBatch(ctx, product)
		cancel()
		if err != nil || found == 0 {
			s.deps.Sleep(context.Background(), moverPause) // the entry is another process's at the moment, or lost, or its server is down
		}
	}
}

// awaited ends the mover when nobody waits for it.
func (s *RedisLua) awaited(product string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting[product]) == 0 {
		delete(s.waiting, product)
		return false
	}
	return true
}

// Work moves the orders that nobody waits for any more, of buyers who have given
// up and of shops that have crashed: now, and then once a second until ctx ends.
func (s *RedisLua) Work(ctx context.Context) {
	for {
		products, err := s.deps.Redis.SMembers(ctx, redisLuaProducts).Result()
		if err == nil {
			for _, name := range products {
				_ = s.Drain(ctx, name) // what failed now is tried again in a second
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// Drain moves a product's orders until none is left.
func (s *RedisLua) Drain(ctx context.Context, product string) error {
	for {
		found, err := s.moveBatch(ctx, product)
		if err != nil {
			return err
		}
		if found == 0 {
			return s.remove(ctx, product, nil) // the product from the set, if still there is no order
		}
	}
}

// moveBatch moves the oldest orders to the database, tells the buyers that wait
// here, and returns how many orders it has found.
func (s *RedisLua) moveBatch(ctx context.Context, product string) (found int, _ error) {
	if err := s.moving.Acquire(ctx, 1); err != nil {
		return 0, fmt.Errorf("wait for the end of a restock: %w", context.Cause(ctx))
	}
	defer s.moving.Release(1)
	entries, err := s.deps.Redis.XRangeN(ctx, redisLuaStream(product), "-", "+", batch).Result()
	if err != nil {
		return 0, deps.Failed(deps.Redis, err)
	}
	orders := make([]admitted, 0, len(entries))
	for _, entry := range entries {
		o, err := readEntry(product, entry)
		if err != nil {
			return 0, err
		}
		orders = append(orders, o)
	}
	state, err := s.write(ctx, product, orders)
	if err != nil {
		return 0, err
	}
	if err := s.tell(ctx, product, state); err != nil || len(orders) == 0 {
		return 0, err
	}
	return len(orders), s.remove(ctx, product, orders)
}

// admitted is an order from the stream.
type admitted struct {
	id      entryID
	entry   string
	key     string
	called  time.Time
	receipt purchase.Receipt // with the record's id once this order is sold
	sold    bool             // the database has sold its units
}

func readEntry(product string, entry redis.XMessage) (o admitted, err error) {
	text := func(name string) string {
		value, _ := entry.Values[name].(string)
		return value
	}
	o = admitted{entry: entry.ID, key: text("key")}
	o.receipt = purchase.Receipt{Product: product, Purchaser: text("purchaser"), Strategy: redisLua}
	if o.id, err = parseEntryID(entry.ID); err == nil {
		o.receipt.Amount, err = strconv.ParseInt(text("units"), 10, 64)
	}
	called, wrong := strconv.ParseInt(text("called"), 10, 64)
	if o.called = time.UnixMicro(called); err != nil || wrong != nil {
		return o, fmt.Errorf("entry %s of the stream of %q is not this shop's: %v", entry.ID, product, entry.Values)
	}
	return o, nil
}

// state is what the database says of a product at one moment.
type state struct {
	last entryID                     // it has decided on this entry and all before it
	left int64                       // units
	sold map[string]purchase.Receipt // by key, of the orders that were asked about
}

func stateOf(p product.Product) (d state, err error) {
	d = state{left: p.Amount, sold: map[string]purchase.Receipt{}}
	if d.last, err = parseEntryID(p.LastEntry); err != nil {
		return d, fmt.Errorf("last_entry of %q: %w", p.Name, err)
	}
	return d, nil
}

// write decides on the orders that the database has not seen, in the order in
// which they were admitted, and sees of the others whether they were sold.
func (s *RedisLua) write(ctx context.Context, name string, orders []admitted) (d state, _ error) {
	if len(orders) == 0 { // another process may have written them: no need to stand in line for the row
		p, err := product.ByName(s.deps.DB.WithContext(ctx), name)
		if err != nil {
			return d, purchase.DatabaseError(ctx, "read the stock", err)
		}
		if d, err = stateOf(p); err != nil || len(s.decided(name, d.last)) == 0 {
			return d, err
		}
		// It has, for buyers of this one. What they are told must outlive the
		// database, so it is read again in a transaction that writes.
	}
	err := purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
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
		var sales []*purchase.Receipt
		var saleKeys []string
		for i := range orders {
			o := &orders[i]
			_, recorded := d.sold[o.key]
			if !o.id.after(d.last) { // decided before, and not taken out of the stream
				o.sold = recorded
				continue
			}
			d.last, p.LastEntry = o.id, o.entry
			if recorded || o.receipt.Amount > d.left { // the last word
				continue
			}
			d.left -= o.receipt.Amount
			o.receipt.Left, o.sold = d.left, true
			o.receipt.Waited = max(0, s.deps.Now().Sub(o.called))
			sales, saleKeys = append(sales, &o.receipt), append(saleKeys, o.key)
			d.sold[o.key] = o.receipt
		}
		if err := purchase.InsertAll(ctx, tx, saleKeys, s.deps.Now(), sales); err != nil {
			return err
		}
		for i, key := range saleKeys {
			d.sold[key] = *sales[i] // with its id now
		}
		return purchase.DatabaseError(ctx, "write the stock", product.SetAmountAfter(tx, p.ID, d.left, p.LastEntry))
	})
	return d, err
}

// tell answers the buyers of this process whose entry the database has decided
// on, in this batch or in one of another process. d was read in a transaction that
// has written and is committed: what another process wrote before is on the disk
// then, too.
func (s *RedisLua) tell(ctx context.Context, product string, d state) error {
	decided := s.decided(product, d.last)
	var elsewhere []string
	for _, w := range decided {
		if _, here := d.sold[w.order.IdempotencyKey]; !here {
			elsewhere = append(elsewhere, w.order.IdempotencyKey)
		}
	}
	sold, err := purchase.SoldUnder(s.deps.DB.WithContext(ctx), elsewhere)
	if err != nil {
		return purchase.DatabaseError(ctx, "look up the sales of other processes", err)
	}
	maps.Copy(d.sold, sold)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range decided {
		if _, waits := s.waiting[product][w]; waits { // else it has left, or was told by another batch
			w.answer <- d.answer(w)
			delete(s.waiting[product], w)
		}
	}
	return nil
}

// decided are the buyers of this process who wait for an entry that is last, or
// came before it.
func (s *RedisLua) decided(product string, last entryID) (decided []*waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.waiting[product] {
		if id, err := parseEntryID(w.entry); err == nil && !id.after(last) {
			decided = append(decided, w)
		}
	}
	return decided
}

// answer is what to tell a buyer on whose entry the database has decided. That
// it is sold out is said only when it is: an entry without a record may also be
// one that Redis has forgotten.
func (d state) answer(w *waiter) answer {
	o := w.order
	receipt, sold := d.sold[o.IdempotencyKey]
	switch {
	case sold && (receipt.Product != o.Product || receipt.Purchaser != o.Purchaser || receipt.Amount != o.Amount):
		return answer{err: purchase.ErrKeyReused}
	case sold:
		return answer{receipt: receipt}
	case o.Amount > d.left:
		return answer{err: fmt.Errorf("%w: the database has refused entry %s", purchase.ErrSoldOut, w.entry)}
	}
	return answer{err: fmt.Errorf("%w: the database is past entry %s and has no record of it; Redis has forgotten the order", purchase.ErrUnknownOutcome, w.entry)}
}

// remove takes the entries out of the stream, and says which units of theirs
// were not sold.
func (s *RedisLua) remove(ctx context.Context, product string, orders []admitted) error {
	args := make([]any, 0, 1+3*len(orders))
	args = append(args, product)
	for _, o := range orders {
		unsold := o.receipt.Amount
		if o.sold {
			unsold = 0
		}
		args = append(args, o.entry, o.key, unsold)
	}
	return deps.Failed(deps.Redis, s.settle.Run(ctx, s.deps.Redis, redisLuaAll(product), args...).Err())
}
