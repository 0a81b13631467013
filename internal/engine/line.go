package engine

import (
	"context"
	"database/sql"
	"sync"

	"golang.org/x/sync/semaphore"
	"gorm.io/gorm"
)

// inLine is a pool in which who first asks for a transaction gets a connection first.
// database/sql gives a connection that is free to any of those who wait (connRequestSet.TakeRandom):
// with 256 buyers at 64 connections one in a hundred waited ten times as long as the rest, see
// docs/reference/benchmarks.md, Overload. Other statements take part in the pool as before.
//
// Any number of goroutines may use it.
type inLine struct {
	*sql.DB
	places *semaphore.Weighted // serves who came first (golang.org/x/sync/semaphore)
}

// stand has transactions of db stand in line for so many connections.
func stand(db *gorm.DB, pool *sql.DB, conns int) {
	line := &inLine{pool, semaphore.NewWeighted(int64(conns))}
	db.ConnPool, db.Statement.ConnPool = line, line
}

// BeginTx is gorm.ConnPoolBeginner's. The error is ctx's where that ends first.
func (l *inLine) BeginTx(ctx context.Context, o *sql.TxOptions) (gorm.ConnPool, error) {
	if err := l.places.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	tx, err := l.DB.BeginTx(ctx, o)
	if err != nil {
		l.places.Release(1)
		return nil, err
	}
	return &placed{tx, l, sync.OnceFunc(func() { l.places.Release(1) })}, nil
}

// GetDBConn is gorm.GetDBConnector's.
func (l *inLine) GetDBConn() (*sql.DB, error) { return l.DB, nil }

// placed is a transaction with a place. Its connection is free before the place is.
type placed struct {
	*sql.Tx
	line  *inLine
	leave func()
}

// Commit is gorm.TxCommitter's.
func (t *placed) Commit() error {
	defer t.leave()
	return t.Tx.Commit()
}

// Rollback is gorm.TxCommitter's.
func (t *placed) Rollback() error {
	defer t.leave()
	return t.Tx.Rollback()
}

// GetDBConn is gorm.GetDBConnector's.
func (t *placed) GetDBConn() (*sql.DB, error) { return t.line.DB, nil }
