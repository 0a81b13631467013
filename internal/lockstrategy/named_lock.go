package lockstrategy

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// NamedLock takes a lock of the database server.
//
//   - Summary: a lock of the database server, by name: MySQL GET_LOCK, PostgreSQL advisory lock; the
//     sale runs on the connection that has the lock
//   - Guarantees: Mutual exclusion per product on one server, for any number of processes. The lock and the
//     writes share a session. When the session ends, the server releases the lock and rolls the transaction
//     back together, so no holder writes after it has lost the lock.
//   - Breaks when: never (single server): the lock and the writes end together
//   - How it breaks: In MySQL the names belong to the server, not to the database. Another Galera node, or a
//     proxy that spreads statements over connections, does not know the lock. In PostgreSQL a session lock
//     (pg_advisory_lock) is lost behind a pooler in transaction mode. This strategy uses a transaction lock.
//   - Cost: Each waiting buyer keeps a connection of the pool. The lock takes two round trips, and one in
//     PostgreSQL.
//   - Source: MySQL 8.0 Reference Manual, 14.14, "Locking Functions"; MariaDB documentation, GET_LOCK;
//     PostgreSQL 15 manual, 13.3.5, "Advisory Locks", and 9.27.10, "Advisory Lock Functions"
//   - Notes: In PostgreSQL the lock, the read and the writes are one transaction at READ COMMITTED, so each
//     statement sees what was committed when it began. At REPEATABLE READ, the statement that waits for the lock
//     takes the snapshot too early, and the read then sees the old stock. The key is the first 64 bits of the
//     SHA-256 of the product's name.
type NamedLock struct {
	deps    Deps
	section purchase.Section
}

// NewNamedLock returns the strategy. It needs a database with named locks.
func NewNamedLock(d Deps) *NamedLock { return &NamedLock{d, d.Section("named-lock")} }

// lockName returns a name within MySQL's limit of 64 characters.
func lockName(product string) string {
	sum := sha256.Sum256([]byte(product))
	return "shop:" + hex.EncodeToString(sum[:16])
}

// lockKey returns the lock's number, for a database whose named locks have numbers.
func lockKey(product string) int64 {
	sum := sha256.Sum256([]byte(product))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// Buy implements purchase.Strategy.
func (s *NamedLock) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	ctx, start, cancel := s.deps.WithWait(ctx)
	defer cancel()
	event := deps.Event{Kind: deps.Waiting, Strategy: "named-lock", Product: o.Product, Purchaser: o.Purchaser}
	s.deps.Report(ctx, event)
	if dialect.Of(s.deps.DB).LocksInTransaction {
		return s.inTransaction(ctx, o, start, event)
	}
	return s.inSession(ctx, o, start, event)
}

// inTransaction takes the lock as the first statement of the transaction that writes. The lock ends
// with that transaction, by COMMIT or in any other way.
func (s *NamedLock) inTransaction(ctx context.Context, o purchase.Order, start time.Time, event deps.Event) (receipt purchase.Receipt, _ error) {
	err := purchase.InTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		if err := tx.Exec("SELECT pg_advisory_xact_lock(?)", lockKey(o.Product)).Error; err != nil {
			return purchase.DatabaseError(ctx, "get the lock", err)
		}
		waited := s.deps.Now().Sub(start)
		event.Kind = deps.Acquired
		s.deps.Report(ctx, event)
		defer func() { // reported before the COMMIT, since another buyer may hold the lock right after the COMMIT
			event.Kind = deps.Released
			s.deps.Report(ctx, event)
		}()
		p, err := product.ByName(tx, o.Product)
		if err != nil {
			return purchase.DatabaseError(ctx, "read the stock", err)
		}
		if err := purchase.Check(p, o); err != nil {
			return err
		}
		receipt, err = s.section.Write(ctx, tx, p, o, waited)
		return err
	}, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return purchase.Receipt{}, err
	}
	return receipt, nil
}

// inSession takes the lock on its own connection and releases it there.
func (s *NamedLock) inSession(ctx context.Context, o purchase.Order, start time.Time, event deps.Event) (purchase.Receipt, error) {
	pool, err := s.deps.DB.DB()
	if err != nil {
		return purchase.Receipt{}, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return purchase.Receipt{}, purchase.DatabaseError(ctx, "connect", err)
	}
	defer conn.Close()
	var got sql.NullInt64
	err = conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", lockName(o.Product), s.deps.Settings.Wait.Seconds()).Scan(&got)
	if err != nil {
		return purchase.Receipt{}, purchase.DatabaseError(ctx, "get the lock", err)
	}
	if got.Int64 != 1 { // 0: timed out; NULL: killed
		return purchase.Receipt{}, fmt.Errorf("get the lock: %w", purchase.ErrBusy)
	}
	event.Kind = deps.Acquired
	s.deps.Report(ctx, event)
	defer func() {
		event.Kind = deps.Released
		s.deps.Report(ctx, event)
		s.release(ctx, conn, o.Product)
	}()
	section := s.section
	section.DB = s.deps.DB.WithContext(ctx) // a copy for this buyer only
	section.DB.Statement.ConnPool = conn
	return section.Sell(ctx, o, s.deps.Now().Sub(start))
}

// release frees the lock after the commit. If it cannot confirm the release, it closes the
// connection, which would otherwise return to the pool with the lock.
func (s *NamedLock) release(ctx context.Context, conn *sql.Conn, product string) {
	ctx, cancel := s.deps.Releasing(ctx)
	defer cancel()
	var freed sql.NullInt64
	err := conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK(?)", lockName(product)).Scan(&freed)
	if err != nil || freed.Int64 != 1 {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes the connection
	}
}

func namedLockEntry() Entry {
	return Entry{
		Name: "named-lock", Family: sqlOnly,
		Needs: []Need{NeedsNamedLocks},
		New:   func(d Deps) purchase.Strategy { return NewNamedLock(d) },
		Traits: Traits{
			WaitsFor: WaitLock,
			// When a connection is lost, the server releases the lock before the shop notices the loss. The
			// next buyer may then hold it while the first one still runs.
			Lock: LockPromise{SharedUnder: []promise.Condition{promise.CommitAnswerLost}},
		},
	}.holds().withPromiseAboveReadCommitted(promise.Played(), verdict.Holds)
}
