package lockstrategy

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/purchase"
)

// maxUnitRows is the maximum size of a product's pool, its rows of one unit each. It limits how
// many rows a search reads and a refill inserts, however large the stock is.
const maxUnitRows = 1000

// withoutGapLocks sets READ COMMITTED. At REPEATABLE READ, InnoDB also locks the gaps between the rows that a
// buyer reads, and refills of the pool would insert into these gaps (TestPartsDeadlocks).
var withoutGapLocks = &sql.TxOptions{Isolation: sql.LevelReadCommitted}

// UnitRows sells rows of one unit each.
//
//   - Summary: one row per unit, FOR UPDATE SKIP LOCKED LIMIT n, from a pool of at most 1,000 rows that is
//     refilled
//   - Guarantees: A buyer locks rows that no other buyer has locked, and deletes them. Each row is one unit
//     and is sold once. If too few rows are unlocked, the strategy reads the stock in one statement and
//     answers "sold out" only if the stock is too small. Otherwise it locks the product's row, which holds
//     the units outside the pool, takes units there and refills the pool. If that row has too few, it waits
//     for the pool's locked rows. Each sale is one transaction with its record.
//   - Breaks when: never, with a single primary
//   - How it breaks: If sessions begin at READ UNCOMMITTED, the stock may contain uncommitted changes, so
//     the strategy may answer "sold out" too early.
//   - Cost: A purchase takes seven round trips (six on PostgreSQL), and no buyer waits for another while the
//     pool lasts. Each unit is a row to insert, lock and delete, and each unit after the first takes one more
//     round trip. Deleted rows slow the search until the database purges them. The stock in an answer may be too
//     high: it does not subtract sales in progress.
//   - Source: MySQL 8.0 Reference Manual, 17.7.2.4, "Locking Reads", SKIP LOCKED; PostgreSQL 15 manual, SELECT,
//     "The Locking Clause"; Shopify Engineering, on inventory reservations with SKIP LOCKED (a pool of at most
//     1,000 rows a product)
//   - Notes: Its transactions run at READ COMMITTED, whatever the sessions' default, since InnoDB's gap
//     locks would make buyers and refills wait for each other in a cycle. Other strategies do not find the
//     units of the pool: one strategy sells a product at a time. The strategy starts again when a Galera
//     cluster refuses a COMMIT (1213).
type UnitRows struct {
	deps    Deps
	retrier waiting.Retrier
}

// NewUnitRows returns the strategy. It needs a database with SKIP LOCKED.
func NewUnitRows(d Deps) *UnitRows {
	return &UnitRows{d, waiting.NewRetrier(d, waiting.AnyRounds)}
}

// errFewUnlocked: there are enough units, but other buyers have locked too many of the rows.
var errFewUnlocked = errors.New("too few rows are unlocked")

// Buy implements purchase.Strategy.
func (s *UnitRows) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, _ error) {
	err := s.retrier.Retry(ctx, o.Product, func(ctx context.Context, start time.Time) (err error) {
		receipt, err = s.take(ctx, o, start)
		if errors.Is(err, errFewUnlocked) {
			receipt, err = s.refill(ctx, o, start)
		}
		return err
	})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}

// take sells unlocked rows. It waits for no row.
func (s *UnitRows) take(ctx context.Context, o purchase.Order, since time.Time) (receipt purchase.Receipt, _ error) {
	err := purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		units, err := stock.UnlockedUnits(tx, o.Product, o.Amount)
		if err != nil {
			return purchase.DatabaseError(ctx, "lock rows that are unlocked", err)
		}
		if int64(len(units)) < o.Amount {
			p, err := product.WithParts(tx, o.Product)
			if err != nil {
				return purchase.DatabaseError(ctx, "read what is left", err)
			}
			return cmp.Or(purchase.Check(p, o), errFewUnlocked)
		}
		if err := stock.RemoveParts(tx, o.Product, units); err != nil {
			return purchase.DatabaseError(ctx, "take the units", err)
		}
		receipt, err = s.record(ctx, tx, o, since)
		return err
	}, withoutGapLocks)
	return receipt, err
}

// refill sells from the product's own row and moves units from there into the pool of rows with one unit each.
// If that row has too few units, refill waits for the pool's locked rows and moves all remaining units into the
// product's row.
//
// It locks the product's row first, as a restock does, and the function `take` waits for no lock. So there
// is no deadlock.
func (s *UnitRows) refill(ctx context.Context, o purchase.Order, since time.Time) (receipt purchase.Receipt, _ error) {
	err := purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		p, err := product.ForUpdate(tx, o.Product)
		if err != nil {
			return purchase.DatabaseError(ctx, "read the stock for update", err)
		}
		if p.Amount >= o.Amount {
			err = purchase.DatabaseError(ctx, "refill the pool", refillPool(tx, p, p.Amount-o.Amount))
		} else {
			err = s.collect(ctx, tx, p, o)
		}
		if err != nil {
			return err
		}
		receipt, err = s.record(ctx, tx, o, since)
		return err
	}, withoutGapLocks)
	return receipt, err
}

// refillPool writes the remaining stock of p: it fills the pool, and puts the rest into the product's row.
func refillPool(tx *gorm.DB, p product.Product, left int64) error {
	units, err := stock.MoreUnits(tx, p.Name, left, maxUnitRows)
	if err != nil {
		return err
	}
	if err := product.SetAmount(tx, p.ID, left-int64(len(units))); err != nil {
		return err
	}
	return stock.AddParts(tx, units)
}

// collect takes the units of an order from the pool. If the pool has too few, it moves the whole pool into the
// product's row and takes the units there. The caller has locked that row. Another buyer may have refilled the
// pool while the caller waited for the row.
func (s *UnitRows) collect(ctx context.Context, tx *gorm.DB, p product.Product, o purchase.Order) error {
	units, err := stock.UnlockedUnits(tx, o.Product, o.Amount)
	if err == nil && int64(len(units)) == o.Amount {
		return purchase.DatabaseError(ctx, "take the units", stock.RemoveParts(tx, o.Product, units))
	}
	if err == nil {
		p.Amount, err = drainPool(tx, p)
	}
	if err != nil {
		return purchase.DatabaseError(ctx, "collect the units", err)
	}
	if err := purchase.Check(p, o); err != nil {
		return err
	}
	return purchase.DatabaseError(ctx, "take the units", product.SetAmount(tx, p.ID, p.Amount-o.Amount))
}

// drainPool moves the pool into the row of p and returns the stock of the row afterwards. It waits
// for buyers that have locked units.
func drainPool(tx *gorm.DB, p product.Product) (units int64, _ error) {
	pool, err := stock.PartsForUpdate(tx, p.Name)
	if err != nil || len(pool) == 0 {
		return p.Amount, err
	}
	numbers := make([]int64, len(pool))
	for i, part := range pool {
		numbers[i] = part.Part
	}
	units = p.Amount + stock.Sum(pool)
	if err := product.SetAmount(tx, p.ID, units); err != nil {
		return units, err
	}
	return units, stock.RemoveParts(tx, p.Name, numbers)
}

// record inserts the record of a sale whose units were taken in tx.
func (s *UnitRows) record(ctx context.Context, tx *gorm.DB, o purchase.Order, since time.Time) (purchase.Receipt, error) {
	receipt := purchase.NewReceipt(o, "unit-rows", 0, s.deps.Now().Sub(since))
	p, err := product.WithParts(tx, o.Product)
	if err != nil {
		return receipt, purchase.DatabaseError(ctx, "read what is left", err)
	}
	receipt.Left = p.Amount
	return receipt, purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
}

func unitRowsEntry() Entry {
	return Entry{
		Name: "unit-rows", Family: throughput,
		Needs:  []Need{NeedsSkipLocked},
		New:    func(d Deps) purchase.Strategy { return NewUnitRows(d) },
		Traits: Traits{LeftLags: true, Left: product.Left, MaxUnits: maxUnitRows},
	}.holds()
}
