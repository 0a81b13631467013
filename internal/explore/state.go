package explore

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/audit"
)

// books are what the database holds of the product.
type books struct {
	audit.Report
	sales map[int64]audit.Sale
}

// restore puts the stock back and removes the records and every key that the
// runs before have named.
func (x *Explorer) restore(ctx context.Context) error {
	if _, err := x.admin.ExecContext(ctx, "DELETE FROM purchase_history WHERE product_name = ?", x.config.Product); err != nil {
		return fmt.Errorf("restore the records: %w", err)
	}
	_, err := x.admin.ExecContext(ctx, "UPDATE product SET amount = ?, stocked = ?, version = 0, fence = 0, last_entry = '0-0' WHERE name = ?",
		x.config.Stock, x.config.Stock, x.config.Product)
	if err != nil {
		return fmt.Errorf("restore the stock: %w", err)
	}
	for _, s := range x.servers {
		if err := s.clear(ctx); err != nil {
			return err
		}
	}
	return nil
}

// clear deletes what runs have named.
func (s *redisServer) clear(ctx context.Context) error {
	s.counted = false
	keys := s.keys.all()
	if len(keys) == 0 {
		return nil
	}
	if err := s.admin.Del(ctx, keys...).Err(); err != nil {
		return fmt.Errorf("restore %s: %w", s.name, err)
	}
	return nil
}

// unheard returns when no server has a listener of a run that has ended: a
// server may see the end of a connection late, and would count it among those
// that it tells in the next run.
func (x *Explorer) unheard(ctx context.Context) error {
	for _, s := range x.servers {
		var channels []string
		for _, key := range s.keys.all() {
			channels = append(channels, channel(key))
		}
		if len(channels) == 0 {
			continue
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Microsecond) {
			listeners, err := s.admin.PubSubNumSub(ctx, channels...).Result()
			if err != nil {
				return fmt.Errorf("look at the listeners of %s: %w", s.name, err)
			}
			if slices.Max(slices.Collect(maps.Values(listeners))) == 0 {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%w: %s does not see that a listener has gone", ErrHarness, s.name)
			}
		}
	}
	return nil
}

// read takes the books in one statement, while nobody else moves.
func (x *Explorer) read(ctx context.Context) (books, error) {
	b := books{sales: map[int64]audit.Sale{}}
	// It costs half of a join. The sales are the rows with a purchaser.
	rows, err := x.admin.QueryContext(ctx, `SELECT amount, stocked, NULL FROM product WHERE name = ?
		UNION ALL SELECT amount, id, purchaser FROM purchase_history WHERE product_name = ?`, x.config.Product, x.config.Product)
	if err != nil {
		return b, fmt.Errorf("read the books: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var amount, other int64
		var purchaser sql.NullString
		if err := rows.Scan(&amount, &other, &purchaser); err != nil {
			return b, fmt.Errorf("read the books: %w", err)
		}
		if !purchaser.Valid {
			b.Leftover, b.Stocked = amount, other
			continue
		}
		for _, sale := range b.sales { // a buyer makes one purchase: its name is the key
			if sale.Purchaser == purchaser.String {
				b.Duplicates++
				break
			}
		}
		b.sales[other] = audit.Sale{Purchaser: purchaser.String, Amount: amount}
		b.Records++
		b.UnitsSold += amount
	}
	b.Report = b.Sums()
	return b, rows.Err()
}

// kill ends a buyer's connections as the end of its process would, and returns
// when the server has rolled back what they had open.
func (x *Explorer) kill(ctx context.Context, from *sqlConnector, buyer int) error {
	for _, c := range from.open(buyer) {
		c.dead.Store(true)
		if err := x.database.end(ctx, c); err != nil {
			return fmt.Errorf("crash: %w", err)
		}
	}
	return nil
}
