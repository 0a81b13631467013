package lockstrategy

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// Transaction reads and writes in one transaction and takes no lock.
//
//   - Summary: the statements of `none` in one transaction at the default isolation level
//   - Guarantees: The sale and its record are committed together or not at all. Another transaction may still
//     read the same stock.
//   - Breaks when: two buyers buy at the same time (MySQL at REPEATABLE READ, PostgreSQL at READ COMMITTED)
//   - How it breaks: Both buyers read the same stock. The second UPDATE waits for the first COMMIT and then
//     writes the number that its buyer computed before. MySQL at REPEATABLE READ allows this write although
//     the snapshot of its transaction is older. PostgreSQL at READ COMMITTED applies it to the newest
//     version of the row.
//   - Cost: It costs as much as `none`.
//   - Source: Berenson et al., "A Critique of ANSI SQL Isolation Levels", SIGMOD 1995, section 4.2 (snapshots
//     alone do not forbid P4); MySQL 8.0 Reference Manual, 17.7.2.3, "Consistent Nonlocking Reads"; PostgreSQL
//     15 manual, 13.2.1 and 13.2.2
//   - Notes: SQLite refuses the second writer (SQLITE_BUSY_SNAPSHOT) and the strategy starts again, so no
//     unit is sold twice there. MariaDB does the same under innodb_snapshot_isolation (error 1020), the
//     default since 11.6.2. The shop's sessions disable that setting, to behave as MySQL does. PostgreSQL
//     at REPEATABLE READ also refuses the second writer (40001, first updater wins).
type Transaction struct {
	deps    Deps
	retrier waiting.Retrier
	section purchase.Section
}

// NewTransaction returns the strategy. It needs only the database.
func NewTransaction(d Deps) *Transaction {
	return &Transaction{d, waiting.NewRetrier(d, waiting.AnyRounds), d.Section("transaction")}
}

// Buy implements purchase.Strategy.
func (s *Transaction) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	return readAndWrite(ctx, s.deps, s.retrier, s.section, o, nil)
}

// readAndWrite runs the naive critical section (read the stock, check it, write it) with its read inside
// the transaction. It starts again when the database refuses the transaction in favor of another buyer.
func readAndWrite(
	ctx context.Context, d Deps, r waiting.Retrier, s purchase.Section, o purchase.Order, options *sql.TxOptions,
) (receipt purchase.Receipt, err error) {
	err = r.Retry(ctx, o.Product, func(ctx context.Context, start time.Time) error {
		return purchase.InTx(ctx, d.DB, func(tx *gorm.DB) error {
			p, err := product.ByName(tx, o.Product)
			if err != nil {
				return purchase.DatabaseError(ctx, "read the stock", err)
			}
			if err := purchase.Check(p, o); err != nil {
				return err
			}
			receipt, err = s.Write(ctx, tx, p, o, d.Now().Sub(start))
			return err
		}, options)
	})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}

func transactionEntry() Entry {
	return Entry{
		Name: "transaction", Family: noControl,
		New: func(d Deps) purchase.Strategy { return NewTransaction(d) },
		Traits: Traits{
			CaughtBy: map[string]string{"Rush": wantSoldTwice, "TwoProcesses": wantSoldTwice, "MixedUnits": wantSoldTwice},
		},
	}.holdsExcept(promise.BreaksFrom(promise.Rush)).withPromiseOn(dialect.SQLite, promise.Played(), verdict.Holds).withPromiseAboveReadCommitted(promise.Played(), verdict.Holds)
}
