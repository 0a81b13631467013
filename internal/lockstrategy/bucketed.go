package lockstrategy

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"hash/fnv"
	"math/bits"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/keyed"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/sizing"
)

func bucketedEntry() Entry {
	return Entry{
		Name: "bucketed", Family: throughput,
		Summary: "stock in K rows: a buyer takes from one chosen by its key, and sweeps the others before sold_out",
		Guarantees: "a buyer takes from one row by a conditional update. Where that has too little, it says sold out only if the sum of all rows, read in one statement, is too little; " +
			"else it sweeps: it locks the product's row and then all of them, takes what it asked for and divides the rest evenly. Each sale is one transaction with its record",
		BreaksWhen: "never (single primary)",
		HowItBreaks: "Where sessions begin at READ UNCOMMITTED the sum may be one that is rolled back, and sold out may be answered too early. " +
			"After a failover to a replica that lacks the last commits, nothing that SQL does helps.",
		Cost: "while there is plenty, five round trips of which up to K buyers are served at once. A sweep keeps all buyers of the product waiting, and towards the end of the stock most sales are sweeps. " +
			"What a buyer is told is left may leave out sales that are under way in other rows",
		Source: `Alibaba Cloud, "Inventory Hint" (the hot row that this divides); O'Neil, "The Escrow Transactional Method", ACM TODS 11(4), 1986 (an amount can be taken from by many at once); ` +
			`AWS, DynamoDB Developer Guide, "Using write sharding to distribute workloads evenly" (a key with a suffix, read by the sum)`,
		Notes: "K is 2 to 32: the buyers of one process that are at the product at once, rounded up to a power of two. It grows in a sweep, and begins anew with a restock. " +
			"The first buyer after a restock moves the stock from the product's row into the K rows, so other strategies find nothing there: a product is for one strategy at a time. " +
			"A sweep runs at READ COMMITTED, without gap locks, which would have the first sweeps of two new products wait for each other. " +
			"Where the database refuses a stale write (PostgreSQL above READ COMMITTED, Galera) it starts again.",
		New: func(d Deps) purchase.Strategy { return NewBucketed(d) },
		Traits: Traits{
			Path:     sizing.Path{SQL: 5, RowSQL: 3, Rows: maxBuckets},
			InMemory: true, LeftLags: true, KeyDecides: true, Left: product.Left,
		},
	}.holds()
}

// Of how many rows a product's stock is divided into. Each row is one sale at a time, and
// more of them than buyers at once serve nobody; a sweep locks and writes them all. 32 are
// 6,400 sales a second where a COMMIT holds its row for 5 ms.
const (
	minBuckets = 2
	maxBuckets = 32
)

// Bucketed sells a product from several rows.
type Bucketed struct {
	deps    Deps
	retrier waiting.Retrier

	mu    sync.Mutex
	inUse keyed.Map[string, *buckets] // by product
}

// buckets are what a process knows of a product's rows while it has buyers there.
type buckets struct {
	rows    int64 // among which it chooses
	buyers  int64 // of this process, now
	growing bool  // one of them makes more rows
}

// NewBucketed needs the database.
func NewBucketed(d Deps) *Bucketed {
	return &Bucketed{deps: d, retrier: waiting.NewRetrier(d, waiting.AnyRounds)}
}

// errElsewhere: the buyer's row has too little, and all together have enough.
var errElsewhere = errors.New("the units are in other rows")

// Buy is purchase.Strategy.Buy.
func (s *Bucketed) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, _ error) {
	b := s.enter(o.Product)
	defer s.leave(o.Product)
	err := s.retrier.Retry(ctx, o.Product, func(ctx context.Context, start time.Time) (err error) {
		c := s.choose(b, o)
		err = errElsewhere
		if !c.grow {
			receipt, err = s.take(ctx, o, c.row, start)
		}
		if errors.Is(err, errElsewhere) {
			receipt, err = s.sweep(ctx, o, c.rows, start)
		}
		s.chose(b, c, err)
		return err
	})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}

func (s *Bucketed) enter(name string) *buckets {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.inUse.Use(name, func() *buckets { return &buckets{rows: minBuckets} })
	b.buyers++
	return b
}

func (s *Bucketed) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, _ := s.inUse.Get(name)
	b.buyers--
	s.inUse.Release(name)
}

// A choice is what a buyer does about the rows.
type choice struct {
	row  int64 // that the order's key chooses
	rows int64 // that a sweep of this buyer makes, at least
	grow bool  // the buyer is the one who makes more, by a sweep
}

func (s *Bucketed) choose(b *buckets, o purchase.Order) choice {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(cmp.Or(o.IdempotencyKey, o.Purchaser)))
	s.mu.Lock()
	defer s.mu.Unlock()
	c := choice{row: int64(hash.Sum64() % uint64(b.rows)), rows: max(b.rows, b.wanted())}
	c.grow = c.rows > b.rows && !b.growing
	b.growing = b.growing || c.grow
	return c
}

// chose notes what has become of a choice.
func (s *Bucketed) chose(b *buckets, c choice, err error) {
	if !c.grow {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.growing = false
	if err == nil {
		b.rows = c.rows
	}
}

// wanted are the rows for so many buyers: a power of two, so that a growing crowd makes
// few sweeps for them.
func (b *buckets) wanted() int64 {
	return min(max(minBuckets, int64(1)<<bits.Len64(uint64(max(b.buyers-1, 0)))), maxBuckets)
}

// take sells from one row. errElsewhere where only a sweep can.
func (s *Bucketed) take(ctx context.Context, o purchase.Order, row int64, since time.Time) (purchase.Receipt, error) {
	receipt := bucketedReceipt(o)
	err := purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		took, err := product.TakeFromPart(tx, o.Product, row, o.Amount)
		if err != nil {
			return purchase.DatabaseError(ctx, "take the units", err)
		}
		receipt.Waited = s.deps.Now().Sub(since)
		p, err := product.WithParts(tx, o.Product)
		if err != nil {
			return purchase.DatabaseError(ctx, "read what is left", err)
		}
		if !took {
			return cmp.Or(purchase.Check(p, o), errElsewhere)
		}
		receipt.Left = p.Amount
		return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
	})
	return receipt, err
}

// sweep sells from all rows and divides what is left. Every sweep and every restock locks
// the product's row first, then the others; who takes from one row waits for no other. So
// none of them wait for each other in a circle.
// It makes so many rows; more, where more are there: another process may need them.
func (s *Bucketed) sweep(ctx context.Context, o purchase.Order, rows int64, since time.Time) (purchase.Receipt, error) {
	receipt := bucketedReceipt(o)
	err := purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		p, err := product.ForUpdate(tx, o.Product)
		if err != nil {
			return purchase.DatabaseError(ctx, "read the stock for update", err)
		}
		parts, err := product.PartsForUpdate(tx, o.Product)
		if err != nil {
			return purchase.DatabaseError(ctx, "read the rows for update", err)
		}
		receipt.Waited = s.deps.Now().Sub(since)
		all := p
		for _, part := range parts {
			all.Amount += part.Amount
		}
		if err := purchase.Check(all, o); err != nil {
			return err
		}
		receipt.Left = all.Amount - o.Amount
		rows = min(max(rows, int64(len(parts))), maxBuckets)
		if err := product.Divide(tx, p, parts, evenly(receipt.Left, rows)); err != nil {
			return purchase.DatabaseError(ctx, "divide the stock", err)
		}
		return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
	}, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	return receipt, err
}

func bucketedReceipt(o purchase.Order) purchase.Receipt {
	return purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount, Strategy: "bucketed"}
}

// evenly divides units among rows.
func evenly(units, rows int64) []int64 {
	amounts := make([]int64, rows)
	for i := range amounts {
		amounts[i] = units / rows
		if int64(i) < units%rows {
			amounts[i]++
		}
	}
	return amounts
}
