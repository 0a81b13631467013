package lockstrategy

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/keyed"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// Of how many rows a product's stock is divided into. Each row is one sale at a time, and
// more of them than buyers at once serve nobody; a sweep locks and writes them all. 32 are
// 6,400 sales a second where a COMMIT holds its row for 5 ms.
const (
	minBuckets = 2
	maxBuckets = 32
)

// Bucketed sells a product from several rows.
//
//   - Summary: stock in K rows: a buyer takes from one of two chosen by its key, and tries the others before
//     sold_out
//   - Guarantees: a buyer takes from one row by a conditional update. Where that has too little, it says sold out
//     only if the sum of all rows, read in one statement, is too little; else it takes from a row that has enough.
//     Where none has, it sweeps: it locks the product's row and then all of them, takes what it asked for and
//     divides the rest evenly. Each sale is one transaction with its record
//   - Breaks when: never (single primary)
//   - How it breaks: Where sessions begin at READ UNCOMMITTED the sum may be one that is rolled back, and sold out
//     may be answered too early. After a failover to a replica that lacks the last commits, nothing that SQL does
//     helps.
//   - Cost: while there is plenty, five round trips of which up to K buyers are served at once. Towards the end of
//     the stock most buyers find their row empty, and need two transactions. A sweep keeps all buyers of the
//     product waiting. What a buyer is told is left may leave out sales that are under way in other rows
//   - Source: Alibaba Cloud, "Inventory Hint" (the hot row that this divides); O'Neil, "The Escrow Transactional
//     Method", ACM TODS 11(4), 1986 (an amount can be taken from by many at once); AWS, DynamoDB Developer Guide,
//     "Using write sharding to distribute workloads evenly" (a key with a suffix, read by the sum)
//   - Notes: K is 2 to 32: the buyers of one process that are at the product at once, rounded up to a power of
//     two. It grows in a sweep, and begins anew with a restock. The first buyer after a restock moves the stock
//     from the product's row into the K rows, so other strategies find nothing there: a product is for one
//     strategy at a time. A sweep runs at READ COMMITTED, without gap locks, which would have the first sweeps of
//     two new products wait for each other. Where the database refuses a stale write (PostgreSQL above READ
//     COMMITTED, Galera) it starts again.
type Bucketed struct {
	deps     Deps
	retrier  waiting.Retrier
	sweepers *waiting.Lines

	mu    sync.Mutex
	inUse keyed.Map[string, *buckets] // by product
}

// buckets are what a process knows of a product's rows while it has buyers there.
type buckets struct {
	rows    int64             // among which it chooses
	at      [maxBuckets]int64 // the buyers of this process that are at each row
	buyers  int64             // of this process, now
	growing bool              // one of them makes more rows
	sweeps  int64             // that this process has made
}

// NewBucketed needs the database.
func NewBucketed(d Deps) *Bucketed {
	return &Bucketed{deps: d, retrier: waiting.NewRetrier(d, waiting.AnyRounds), sweepers: waiting.NewLines(1)}
}

var (
	// errElsewhere: the buyer's row has too little, and all together have enough.
	errElsewhere = errors.New("the units are in other rows")
	// errSwept: another buyer of this process has divided the stock meanwhile.
	errSwept = errors.New("the rows are divided anew")
)

// Buy is purchase.Strategy.Buy.
func (s *Bucketed) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, _ error) {
	b := s.enter(o.Product)
	defer s.leave(o.Product)
	s.deps.Report(ctx, deps.Event{Kind: deps.Waiting, Strategy: "bucketed", Product: o.Product, Purchaser: o.Purchaser})
	err := s.retrier.Retry(ctx, o.Product, func(ctx context.Context, start time.Time) (err error) {
		for err = errSwept; errors.Is(err, errSwept); {
			receipt, err = s.round(ctx, b, o, start)
		}
		return err
	})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}

// round takes from one row, from another where that has too little, and sweeps where no row
// has enough. Who finds a row empty that had enough when it looked was overtaken by a sale.
func (s *Bucketed) round(ctx context.Context, b *buckets, o purchase.Order, start time.Time) (purchase.Receipt, error) {
	c := s.choose(b, o)
	if c.grow {
		return s.sweepInTurn(ctx, b, c, o, start)
	}
	for row := c.row; ; {
		receipt, enough, err := s.take(ctx, o, row, start)
		s.gone(b, row)
		switch {
		case !errors.Is(err, errElsewhere):
			return receipt, err
		case len(enough) == 0:
			return s.sweepInTurn(ctx, b, c, o, start)
		}
		row = s.chooseAmong(b, o, enough)
	}
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
	row    int64 // to take from
	grow   bool  // the buyer is the one who makes more, by a sweep
	sweeps int64 // of this process that it knows of
}

// choose is the first choice of a buyer: a row, or to make more of them.
func (s *Bucketed) choose(b *buckets, o purchase.Order) choice {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := choice{grow: b.wanted() > b.rows && !b.growing, sweeps: b.sweeps}
	if c.grow {
		b.growing = true
		return c
	}
	c.row = b.emptier(twoOf(o, b.rows))
	b.at[c.row]++
	return c
}

// chooseAmong is its next choice, among the rows that had enough. That they are there is
// news where another process has made them.
func (s *Bucketed) chooseAmong(b *buckets, o purchase.Order, enough []int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.rows = max(b.rows, enough[len(enough)-1]+1)
	one, other := twoOf(o, int64(len(enough)))
	row := b.emptier(enough[one], enough[other])
	b.at[row]++
	return row
}

// twoOf are the two of n that the order's key names.
func twoOf(o purchase.Order, n int64) (one, other int64) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(cmp.Or(o.IdempotencyKey, o.Purchaser)))
	sum := hash.Sum64()
	return int64(sum % uint64(n)), int64(sum >> 32 % uint64(n))
}

// emptier is the row of two at which fewer buyers of this process are (Mitzenmacher, "The
// Power of Two Choices in Randomized Load Balancing", 2001): by the key alone some rows have
// lines while others are free.
func (b *buckets) emptier(one, other int64) int64 {
	if b.at[other] < b.at[one] {
		return other
	}
	return one
}

// gone is when a buyer has left its row.
func (s *Bucketed) gone(b *buckets, row int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.at[row]--
}

// sweepInTurn sweeps, one buyer of the process after the other. errSwept where one has
// since this one chose: the rows are as full as they can be, and each of a crowd whose
// product nobody has divided yet would lock them all in turn.
func (s *Bucketed) sweepInTurn(ctx context.Context, b *buckets, c choice, o purchase.Order, start time.Time) (receipt purchase.Receipt, err error) {
	var rows int64
	defer func() { s.swept(b, c, rows, err) }()
	place, err := s.sweepers.Front(ctx, o.Product)
	if err != nil {
		return receipt, fmt.Errorf("wait for a sweep: %w", err)
	}
	defer place.Leave()
	var due bool
	if rows, due = s.due(b, c); !due {
		return receipt, errSwept
	}
	return s.sweep(ctx, o, rows, start)
}

// due reports whether a sweep is still to be made, and for how many rows.
func (s *Bucketed) due(b *buckets, c choice) (rows int64, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows = max(b.rows, b.wanted())
	return rows, b.sweeps == c.sweeps || c.grow && rows > b.rows
}

// swept notes what has become of a sweep.
func (s *Bucketed) swept(b *buckets, c choice, rows int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.growing = b.growing && !c.grow
	if err == nil {
		b.rows = rows
		b.sweeps++
	}
}

// wanted are the rows for so many buyers: a power of two, so that a growing crowd makes
// few sweeps for them.
func (b *buckets) wanted() int64 {
	return min(max(minBuckets, int64(1)<<bits.Len64(uint64(max(b.buyers-1, 0)))), maxBuckets)
}

// take sells from one row. errElsewhere where that has too little and all together have
// enough, with the rows that alone had enough; by then the transaction has ended, so that
// nobody waits for one row with another one locked.
func (s *Bucketed) take(ctx context.Context, o purchase.Order, row int64, since time.Time) (receipt purchase.Receipt, enough []int64, _ error) {
	receipt = bucketedReceipt(o)
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
		if took {
			receipt.Left = p.Amount
			return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
		}
		if err := purchase.Check(p, o); err != nil {
			return err
		}
		enough, err = product.PartsWith(tx, o.Product, o.Amount, maxBuckets)
		if err != nil {
			return purchase.DatabaseError(ctx, "look for a row with enough", err)
		}
		return errElsewhere
	})
	return receipt, enough, err
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
		if err := product.Divide(tx, p, parts, product.Evenly(receipt.Left, rows)); err != nil {
			return purchase.DatabaseError(ctx, "divide the stock", err)
		}
		return purchase.Insert(ctx, tx, o.IdempotencyKey, s.deps.Now(), &receipt)
	}, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	return receipt, err
}

func bucketedReceipt(o purchase.Order) purchase.Receipt {
	return purchase.Receipt{Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount, Strategy: "bucketed"}
}

func bucketedEntry() Entry {
	return Entry{
		Name: "bucketed", Family: throughput,
		New: func(d Deps) purchase.Strategy { return NewBucketed(d) },
		Traits: Traits{
			Uncounted: sizing.Path{Rows: maxBuckets},
			WaitsFor:  AWorker, // who sweeps; at a row it is the database that knows
			InMemory:  true, LeftLags: true, KeyDecides: true, Left: product.Left,
		},
	}.holds()
}
