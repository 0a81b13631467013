package lockstrategy

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"fmt"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/purchase"
)

func namedLockEntry() Entry {
	return Entry{
		Name: "named-lock", Family: sqlOnly,
		Summary: "MySQL GET_LOCK, the section on the lock's own connection",
		Guarantees: "one buyer of a product at a time on one server, whatever the number of processes. Lock and writes share a session: when it dies, " +
			"the lock is freed and the transaction rolled back together, so nobody writes under a lock that is lost",
		BreaksWhen:  "never (single server): lock and writes die together",
		HowItBreaks: "The names belong to the server, not to the database. A Galera node, or a proxy that spreads statements over connections, knows nothing of them.",
		Cost:        "each waiting buyer keeps a connection of the pool; two round trips",
		Source:      `MySQL 8.0 Reference Manual, 14.14, "Locking Functions"; MariaDB documentation, GET_LOCK`,
		Needs:       []Need{NeedsNamedLocks},
		New:         func(d Deps) purchase.Strategy { return NewNamedLock(d) },
		Traits:      Traits{WaitsFor: ALock},
	}.holds()
}

// NamedLock holds a lock of the database server.
type NamedLock struct {
	deps    Deps
	section purchase.Section
}

// NewNamedLock needs MySQL or MariaDB.
func NewNamedLock(d Deps) *NamedLock { return &NamedLock{d, d.Section("named-lock")} }

// lockName is of the length that MySQL takes: 64 characters.
func lockName(product string) string {
	sum := sha256.Sum256([]byte(product))
	return "shop:" + hex.EncodeToString(sum[:16])
}

// Buy is purchase.Strategy.Buy.
func (s *NamedLock) Buy(ctx context.Context, o purchase.Order) (receipt purchase.Receipt, _ error) {
	ctx, start, cancel := s.deps.WithWait(ctx)
	defer cancel()
	event := deps.Event{Kind: deps.Waiting, Strategy: "named-lock", Product: o.Product, Purchaser: o.Purchaser}
	s.deps.Report(ctx, event)
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
	section.DB = s.deps.DB.WithContext(ctx) // a copy, for this buyer alone
	section.DB.Statement.ConnPool = conn
	return section.Sell(ctx, o, s.deps.Now().Sub(start))
}

// release frees the lock, after the commit. A connection that cannot say that
// it did must not go back to the pool: it would keep the lock.
func (s *NamedLock) release(ctx context.Context, conn *sql.Conn, product string) {
	ctx, cancel := s.deps.Releasing(ctx)
	defer cancel()
	var freed sql.NullInt64
	err := conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK(?)", lockName(product)).Scan(&freed)
	if err != nil || freed.Int64 != 1 {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it
	}
}
