package lockstrategy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/spread"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/purchase"
)

// Bucketed sells a product from several rows.
//
//   - Summary: stock divided over K rows: the Idempotency-Key or the buyer's name selects two rows, and the
//     sale takes from one of them; it tries the remaining rows before sold_out
//   - Guarantees: A buyer takes from one row by a conditional update. If that row has too little, the strategy
//     reads the sum of all rows in one statement and answers "sold out" only if the sum is too small. Otherwise
//     it takes from a row that has enough. If no row has enough, it sweeps: it locks the product's row and then
//     all others, takes the amount and divides the rest evenly. Each sale is one transaction with its record.
//   - Breaks when: never, with a single primary
//   - How it breaks: If sessions begin at READ UNCOMMITTED, the sum may contain uncommitted changes, so the
//     strategy may answer "sold out" too early.
//   - Cost: While many units are left, a purchase takes five round trips, and up to K buyers are served at
//     once. Towards the end of the stock, most buyers find their row empty and need two transactions. A
//     sweep blocks all buyers of the product. The stock in an answer may be too high: it does not subtract
//     sales in progress in other rows.
//   - Source: Alibaba Cloud, "Inventory Hint" (the row that every buyer wants). O'Neil, "The Escrow Transactional
//     Method", ACM TODS 11(4), 1986 (many can take from one amount at once). AWS, DynamoDB Developer Guide,
//     "Using write sharding to distribute workloads evenly" (suffixes spread one key over several rows; a
//     reader adds them up)
//   - Notes: K is 2 to 32: the number of buyers of one process that want the product at once, rounded up to a
//     power of two. It grows in a sweep and starts again with a restock. The first buyer after a restock moves
//     the stock from the product's row into the K rows, so other strategies find nothing there: one strategy
//     sells a product at a time. A sweep runs at READ COMMITTED, without gap locks, which would block the first
//     sweeps of two new products against each other. If the database refuses a stale write (PostgreSQL above
//     READ COMMITTED, Galera), the strategy starts again.
type Bucketed struct {
	deps     Deps
	retrier  waiting.Retrier
	sweepers *waiting.Lines
	crowds   spread.Crowds
}

// NewBucketed returns the strategy. It needs only the database.
func NewBucketed(d Deps) *Bucketed {
	return &Bucketed{deps: d, retrier: waiting.NewRetrier(d, waiting.AnyRounds), sweepers: waiting.NewLines(1)}
}

var (
	// errElsewhere: the buyer's row has too few units, but all rows together have enough.
	errElsewhere = errors.New("the units are in other rows")
	// errSwept: another buyer of this process has divided the stock among the rows again since this buyer chose
	// its row.
	errSwept = errors.New("the rows are divided anew")
)

// Buy implements purchase.Strategy.
func (s *Bucketed) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, _ error) {
	crowd := s.crowds.Enter(o.Product)
	defer s.crowds.Leave(o.Product)
	s.deps.Report(ctx, deps.Event{Kind: deps.Waiting, Strategy: "bucketed", Product: o.Product, Purchaser: o.Purchaser})
	err := s.retrier.Retry(ctx, o.Product, func(ctx context.Context, start time.Time) (err error) {
		for err = errSwept; errors.Is(err, errSwept); {
			receipt, err = s.round(ctx, crowd, o, start)
		}
		return err
	})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}

// round is one attempt. It takes from one row. If that row has too few units, it tries the others. If no
// single row has enough, it sweeps: it sells from all rows together.
func (s *Bucketed) round(ctx context.Context, crowd *spread.Crowd, o purchase.Order, start time.Time) (purchase.Receipt, error) {
	choice := crowd.Choose(o)
	if choice.Grow {
		return s.sweepInTurn(ctx, crowd, choice, o, start)
	}
	for row := choice.Row; ; {
		receipt, enough, err := s.take(ctx, o, row, start)
		crowd.Gone(row)
		switch {
		case !errors.Is(err, errElsewhere):
			return receipt, err
		case len(enough) == 0:
			return s.sweepInTurn(ctx, crowd, choice, o, start)
		}
		row = crowd.ChooseAmong(o, enough)
	}
}

// sweepInTurn runs sweep for one buyer of the process at a time. It returns errSwept if another buyer has
// swept since this buyer chose its row. This saves each waiting buyer from locking all rows again.
func (s *Bucketed) sweepInTurn(
	ctx context.Context, crowd *spread.Crowd, choice spread.Choice, o purchase.Order, start time.Time,
) (receipt purchase.Receipt, err error) {
	var rows int64
	defer func() { crowd.Swept(choice, rows, err) }()
	place, err := s.sweepers.Front(ctx, o.Product)
	if err != nil {
		return receipt, fmt.Errorf("wait for a sweep: %w", err)
	}
	defer place.Leave()
	var due bool
	if rows, due = crowd.Due(choice); !due {
		return receipt, errSwept
	}
	return s.sweep(ctx, o, rows, start)
}

// take sells from one row. If that row has too few units and all rows together have enough, it
// returns errElsewhere and the rows that each have enough. The transaction has ended by then, so
// no buyer waits for one row while it holds another.
func (s *Bucketed) take(ctx context.Context, o purchase.Order, row int64, since time.Time) (receipt purchase.Receipt, enough []int64, _ error) {
	receipt = purchase.NewReceipt(o, "bucketed", 0, 0)
	err := purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		took, err := stock.TakeFromPart(tx, o.Product, row, o.Amount)
		if err != nil {
			return purchase.DatabaseError(ctx, "take the units", err)
		}
		receipt.Waited = s.deps.Now().Sub(since)
		p, err := product.WithParts(tx, o.Product)
		if err != nil {
			return purchase.DatabaseError(ctx, "read what is left", err)
		}
		if took {
			receipt.Left = p.Amount
			return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
		}
		if err := purchase.Check(p, o); err != nil {
			return err
		}
		enough, err = stock.PartsWith(tx, o.Product, o.Amount, spread.MaxRows)
		if err != nil {
			return purchase.DatabaseError(ctx, "look for a row with enough", err)
		}
		return errElsewhere
	})
	return receipt, enough, err
}

// sweep sells from all rows and divides the remaining units evenly among them. It never lowers the
// number of rows, since another process may need them.
//
// Sweeps and restocks lock the product's row first and then the others. A buyer that takes from one
// row waits for no other row. So there is no deadlock.
func (s *Bucketed) sweep(ctx context.Context, o purchase.Order, rows int64, since time.Time) (purchase.Receipt, error) {
	receipt := purchase.NewReceipt(o, "bucketed", 0, 0)
	err := purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		p, err := product.ForUpdate(tx, o.Product)
		if err != nil {
			return purchase.DatabaseError(ctx, "read the stock for update", err)
		}
		parts, err := stock.PartsForUpdate(tx, o.Product)
		if err != nil {
			return purchase.DatabaseError(ctx, "read the rows for update", err)
		}
		receipt.Waited = s.deps.Now().Sub(since)
		all := p
		all.Amount += stock.Sum(parts)
		if err := purchase.Check(all, o); err != nil {
			return err
		}
		receipt.Left = all.Amount - o.Amount
		if p.Amount != 0 {
			if err := product.SetAmount(tx, p.ID, 0); err != nil {
				return purchase.DatabaseError(ctx, "divide the stock", err)
			}
		}
		rows = min(max(rows, int64(len(parts))), spread.MaxRows)
		if err := stock.WriteParts(tx, o.Product, parts, stock.Evenly(receipt.Left, rows)); err != nil {
			return purchase.DatabaseError(ctx, "divide the stock", err)
		}
		return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
	}, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	return receipt, err
}

func bucketedEntry() Entry {
	return Entry{
		Name: "bucketed", Family: throughput,
		New: func(d Deps) purchase.Strategy { return NewBucketed(d) },
		Traits: Traits{
			WaitsFor: WaitWorker, // one buyer sweeps at a time; the database guards the rows
			LeftLags: true, KeyDecides: true, Left: product.Left,
		},
	}.holds()
}
