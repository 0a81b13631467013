package measure

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/load/quantile"
	"github.com/oversell/oversell/internal/load/sizing"
)

// probes is the number of requests to a server.
const probes = 25

// Ask measures the answer times of servers to one client. db must have the shop's schema. Ask writes
// the row of a product that no buyer asks for. locks may be nil.
func Ask(ctx context.Context, db *sql.DB, locks redis.UniversalClient) (s sizing.Servers, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return s, err
	}
	defer conn.Close()
	if s.StatementMS, err = typical(func() error { _, err := conn.ExecContext(ctx, "SELECT 1"); return err }); err != nil {
		return s, err
	}
	commits := make([]time.Duration, 0, probes)
	for n := range probes {
		took, err := commit(ctx, conn, n)
		if err != nil {
			return s, err
		}
		commits = append(commits, took)
	}
	s.CommitMS = max(0, median(commits)-s.StatementMS)
	if locks != nil {
		s.RedisMS, err = typical(func() error { return locks.Ping(ctx).Err() })
	}
	return s, err
}

// commit returns the time of COMMIT after a transaction has written a row.
func commit(ctx context.Context, conn *sql.Conn, n int) (time.Duration, error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // has no effect after COMMIT
	// The value goes up and down in turn, since an unchanged row is not written. No buyer asks for that product.
	by := "+ 1"
	if n%2 == 1 {
		by = "- 1"
	}
	// #nosec G202 -- by is a constant of this file
	if _, err := tx.ExecContext(ctx, "UPDATE product SET stocked = stocked "+by+" WHERE name = 'apple'"); err != nil {
		return 0, err
	}
	start := time.Now()
	err = tx.Commit()
	return time.Since(start), err
}

// typical returns the median time of a call, in milliseconds.
func typical(call func() error) (float64, error) {
	took := make([]time.Duration, 0, probes)
	for range probes {
		start := time.Now()
		if err := call(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	return median(took), nil
}

func median(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(quantile.Of(took, 0.5).Microseconds()) / 1000
}
