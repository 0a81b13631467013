// transaction: the naive code inside one transaction of the default isolation.
//
// Guarantees:  all or nothing. Not that nobody else reads the same stock.
// Breaks when: two buyers at once, on MySQL (repeatable read) and Postgres (read
//              committed): both read the same snapshot, the second UPDATE waits
//              for the first COMMIT and then writes the number computed before.
//              SQLite refuses the second writer (SQLITE_BUSY_SNAPSHOT); the
//              buyer starts again, and it holds there. So does MariaDB under
//              innodb_snapshot_isolation (error 1020), the default since 11.6.2;
//              the shop's sessions switch it off, to be MySQL's.
// Cost:        as none.
// Source:      Berenson et al., "A Critique of ANSI SQL Isolation Levels",
//              SIGMOD 1995, section 4.2: snapshots alone do not forbid P4.
//              MySQL 8.0 Reference Manual, 17.7.2.3, "Consistent Nonlocking Reads".

package lockstrategy

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// Transaction reads and writes in one transaction, and locks nothing.
type Transaction struct {
	retrier
	section purchase.Section
}

// NewTransaction needs the database.
func NewTransaction(d Deps) *Transaction {
	return &Transaction{newRetrier(d, unbounded), d.section("transaction")}
}

// Buy is purchase.Strategy.Buy.
func (s *Transaction) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	return s.readAndWrite(ctx, s.section, o, nil)
}

// readAndWrite is the naive section with its read inside the transaction,
// started again when the database refuses it in favour of another buyer.
func (r retrier) readAndWrite(ctx context.Context, s purchase.Section, o purchase.Order, options *sql.TxOptions) (receipt purchase.Receipt, err error) {
	err = r.retry(ctx, o.Product, func(ctx context.Context, start time.Time) error {
		return purchase.InTx(ctx, r.deps.DB, func(tx *gorm.DB) error {
			p, err := product.ByName(tx, o.Product)
			if err != nil {
				return purchase.DatabaseError(ctx, "read the stock", err)
			}
			if err := purchase.Check(p, o); err != nil {
				return err
			}
			receipt, err = s.Write(ctx, tx, p, o, r.deps.Now().Sub(start))
			return err
		}, options)
	})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}
