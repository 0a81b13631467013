package lockstrategy

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// batch is how many orders one transaction writes, at most.
const batch = 500

// moverPause is how long a mover waits when it has found nothing that its buyers
// wait for, or the database was not there.
const moverPause = 10 * time.Millisecond

// A mover is a goroutine that moves one product's orders, for as long as buyers
// of this process wait for theirs. Movers of several processes take turns at the
// product's row, whose lock each holds for its batch.
type mover struct {
	waiting map[string][]waiter // by entry; several under one Idempotency-Key
}

type waiter struct {
	key    string
	answer chan answer // of capacity 1
}

// await says where the answer for an entry will be, and sees to it that a
// mover runs.
func (s *RedisLua) await(o purchase.Order, entry string) chan answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.movers[o.Product]
	if m == nil {
		m = &mover{waiting: map[string][]waiter{}}
		s.movers[o.Product] = m
		go s.move(o.Product, m)
	}
	w := waiter{o.IdempotencyKey, make(chan answer, 1)}
	m.waiting[entry] = append(m.waiting[entry], w)
	return w.answer
}

// leave forgets a buyer that has given up.
func (s *RedisLua) leave(product, entry string, answer chan answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.movers[product]; m != nil {
		m.waiting[entry] = slices.DeleteFunc(m.waiting[entry], func(w waiter) bool { return w.answer == answer })
		if len(m.waiting[entry]) == 0 {
			delete(m.waiting, entry)
		}
	}
}

// move runs until nobody waits.
func (s *RedisLua) move(product string, m *mover) {
	for s.awaited(product, m) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*s.deps.Settings.Wait)
		moved, err := s.moveBatch(ctx, product, m)
		cancel()
		if err != nil || moved == 0 {
			s.deps.pause(context.Background(), moverPause) // the entry is another process's at the moment, or lost, or its server is down
		}
	}
}

// awaited ends the mover when nobody waits for it.
func (s *RedisLua) awaited(product string, m *mover) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(m.waiting) == 0 {
		delete(s.movers, product)
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
		moved, err := s.moveBatch(ctx, product, &mover{})
		if err != nil {
			return err
		}
		if moved == 0 {
			return serverError("redis", s.deps.Redis.SRem(ctx, redisLuaProducts, product).Err())
		}
	}
}

// moveBatch moves the oldest orders to the database, tells the buyers that wait
// with m, and returns how many entries it took out of the stream.
func (s *RedisLua) moveBatch(ctx context.Context, product string, m *mover) (moved int, _ error) {
	entries, err := s.deps.Redis.XRangeN(ctx, redisLuaStream(product), "-", "+", batch).Result()
	if err != nil {
		return 0, serverError("redis", err)
	}
	orders := make([]admitted, 0, len(entries))
	for _, entry := range entries {
		o, err := readEntry(product, entry)
		if err != nil {
			return 0, err
		}
		orders = append(orders, o)
	}
	last, err := s.write(ctx, product, orders)
	if err != nil {
		return 0, err
	}
	if err := s.tell(ctx, product, m, orders, last); err != nil {
		return 0, err
	}
	return s.remove(ctx, product, orders)
}

// admitted is an order from the stream and what became of it.
type admitted struct {
	id      entryID
	entry   string
	key     string
	called  time.Time
	receipt purchase.Receipt // with the record's id once it is sold
	sold    bool
}

func readEntry(product string, entry redis.XMessage) (o admitted, err error) {
	text := func(name string) string {
		value, _ := entry.Values[name].(string)
		return value
	}
	o = admitted{entry: entry.ID, key: text("key")}
	o.receipt = purchase.Receipt{Product: product, Purchaser: text("purchaser"), Strategy: "redis-lua"}
	if o.id, err = parseEntryID(entry.ID); err == nil {
		o.receipt.Amount, err = strconv.ParseInt(text("units"), 10, 64)
	}
	called, wrong := strconv.ParseInt(text("called"), 10, 64)
	if o.called = time.UnixMicro(called); err != nil || wrong != nil {
		return o, fmt.Errorf("entry %s of the stream of %q is not this shop's: %v", entry.ID, product, entry.Values)
	}
	return o, nil
}

// write decides on the orders that the database has not seen, in the order in
// which they were admitted, and says of the others whether they were sold. It
// returns the last entry that the database has seen now.
func (s *RedisLua) write(ctx context.Context, name string, orders []admitted) (last entryID, _ error) {
	err := purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		p, err := product.ForUpdate(tx, name)
		if err != nil {
			return purchase.DatabaseError(ctx, "read the stock for update", err)
		}
		if last, err = parseEntryID(p.LastEntry); err != nil {
			return fmt.Errorf("last_entry of %q: %w", name, err)
		}
		keys := make([]string, 0, len(orders))
		for _, o := range orders {
			keys = append(keys, o.key)
		}
		recorded, err := purchase.SoldUnder(tx, keys)
		if err != nil {
			return purchase.DatabaseError(ctx, "look up the keys", err)
		}
		var sales []*purchase.Receipt
		var saleKeys []string
		for i := range orders {
			o := &orders[i]
			earlier, there := recorded[o.key]
			switch {
			case !o.id.after(last): // written before, and not taken out of the stream
				o.receipt, o.sold = earlier, there
			case !there && o.receipt.Amount <= p.Amount: // the last word
				p.Amount -= o.receipt.Amount
				o.receipt.Left, o.sold = p.Amount, true
				o.receipt.Waited = max(0, s.deps.Now().Sub(o.called))
				sales, saleKeys = append(sales, &o.receipt), append(saleKeys, o.key)
				recorded[o.key] = o.receipt
			}
			if o.id.after(last) {
				last, p.LastEntry = o.id, o.entry
			}
		}
		if len(orders) == 0 {
			return nil
		}
		if err := purchase.InsertAll(ctx, tx, saleKeys, s.deps.Now(), sales); err != nil {
			return err
		}
		return purchase.DatabaseError(ctx, "write the stock", product.SetAmountAfter(tx, p.ID, p.Amount, p.LastEntry))
	})
	return last, err
}

// tell answers the buyers of this process whose entry the database has decided
// on, in this batch or in one of another process.
func (s *RedisLua) tell(ctx context.Context, product string, m *mover, orders []admitted, last entryID) error {
	here := map[string]admitted{}
	for _, o := range orders {
		here[o.entry] = o
	}
	decided := map[string][]waiter{}
	var elsewhere []string
	s.mu.Lock()
	for entry, waiters := range m.waiting {
		if id, err := parseEntryID(entry); err != nil || id.after(last) {
			continue // still on its way
		}
		decided[entry] = waiters
		if _, ok := here[entry]; !ok {
			elsewhere = append(elsewhere, waiters[0].key)
		}
	}
	s.mu.Unlock()
	sold, err := purchase.SoldUnder(s.deps.DB.WithContext(ctx), elsewhere)
	if err != nil {
		return purchase.DatabaseError(ctx, "look up the sales of other processes", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for entry, waiters := range decided {
		a := answer{err: fmt.Errorf("%w: the database has refused entry %s", purchase.ErrSoldOut, entry)}
		if receipt, ok := sold[waiters[0].key]; ok {
			a = answer{receipt: receipt}
		}
		if o, ok := here[entry]; ok && o.sold {
			a = answer{receipt: o.receipt}
		}
		for _, w := range m.waiting[entry] { // with those who have come meanwhile
			w.answer <- a
		}
		delete(m.waiting, entry)
	}
	return nil
}

// remove takes the entries out of the stream, and gives the units of the refused
// ones back.
func (s *RedisLua) remove(ctx context.Context, product string, orders []admitted) (int, error) {
	if len(orders) == 0 {
		return 0, nil
	}
	args := make([]any, 0, 3*len(orders))
	for _, o := range orders {
		back := o.receipt.Amount
		if o.sold {
			back = 0
		}
		args = append(args, o.entry, o.key, back)
	}
	removed, err := s.settle.Run(ctx, s.deps.Redis, []string{redisLuaStock(product), redisLuaStream(product), redisLuaKeys(product)}, args...).Int()
	return removed, serverError("redis", err)
}
