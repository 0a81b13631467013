package explore

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	rows, err := x.admin.QueryContext(ctx, `SELECT p.amount, p.stocked, h.id, h.purchaser, h.amount
		FROM product p LEFT JOIN purchase_history h ON h.product_name = p.name WHERE p.name = ? ORDER BY h.id`, x.config.Product)
	if err != nil {
		return b, fmt.Errorf("read the books: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, amount sql.NullInt64
		var purchaser sql.NullString
		if err := rows.Scan(&b.Leftover, &b.Stocked, &id, &purchaser, &amount); err != nil {
			return b, fmt.Errorf("read the books: %w", err)
		}
		if id.Valid {
			b.sales[id.Int64] = audit.Sale{Purchaser: purchaser.String, Amount: amount.Int64}
			b.Records++
			b.UnitsSold += amount.Int64
		}
	}
	b.Report = b.Sums()
	return b, rows.Err()
}

// waiting are the connections whose statement waits for a lock of the database.
//
// Two looks, the second of which is exact: the counter is cheap and tells when
// to look, but a statement that was granted its lock is still counted until its
// thread has woken. A transaction's own state is cleared by who grants.
func (x *Explorer) waiting(ctx context.Context) (map[int64]bool, error) {
	waiting := map[int64]bool{}
	if !x.mysql {
		return waiting, nil // SQLite refuses, and the gate knows
	}
	if x.named() {
		if err := x.waitingByName(ctx, waiting); err != nil {
			return nil, fmt.Errorf("see who waits: %w", err)
		}
	}
	var name string
	var counted int
	if err := x.admin.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").Scan(&name, &counted); err != nil {
		return nil, fmt.Errorf("see who waits: %w", err)
	}
	if counted == 0 {
		return waiting, nil
	}
	var kind, of, status string
	if err := x.admin.QueryRowContext(ctx, "SHOW ENGINE INNODB STATUS").Scan(&kind, &of, &status); err != nil {
		return nil, fmt.Errorf("see who waits: %w", err)
	}
	_, status, _ = strings.Cut(status, "LIST OF TRANSACTIONS FOR EACH SESSION:")
	for transaction := range strings.SplitSeq(status, "\n---TRANSACTION ") {
		// A thread of the server's own may wait too, and has no id of ours.
		id := thread.FindStringSubmatch(transaction)
		if id != nil && strings.Contains(transaction, "\nLOCK WAIT ") {
			n, err := strconv.ParseInt(id[1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("see who waits: %w", err)
			}
			waiting[n] = true
		}
	}
	return waiting, nil
}

// thread is in the line of a transaction that says whose it is.
var thread = regexp.MustCompile(`\nM(?:ariaDB|ySQL) thread id ([0-9]+),`)

// waitingByName adds those that wait in GET_LOCK.
func (x *Explorer) waitingByName(ctx context.Context, waiting map[int64]bool) error {
	rows, err := x.admin.QueryContext(ctx, "SELECT id FROM information_schema.processlist WHERE state = 'User lock'")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		waiting[id] = true
	}
	return rows.Err()
}

// kill ends a buyer's connections as the end of its process would, and returns
// when the server has rolled back what they had open.
func (x *Explorer) kill(ctx context.Context, from *sqlConnector, buyer int) error {
	for _, c := range from.open(buyer) {
		if err := x.end(ctx, c); err != nil {
			return fmt.Errorf("crash: %w", err)
		}
	}
	return nil
}

// end is kill for one connection.
func (x *Explorer) end(ctx context.Context, c *sqlConn) error {
	c.dead.Store(true)
	if !x.mysql {
		return c.Close()
	}
	_, _ = x.admin.ExecContext(ctx, fmt.Sprintf("KILL %d", c.id)) // an error: it has gone already
	for deadline := time.Now().Add(patience); ; {
		var left int
		err := x.admin.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", c.id).Scan(&left)
		if err != nil {
			return err
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: the server does not end a connection", ErrHarness)
		}
	}
}
