package purchase

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/sqlerror"
)

// InTx runs fn in one transaction and commits it. The options may set the isolation level, which is
// the database's default otherwise. SQLite's driver ignores them: its transactions are serializable.
//
// If fn returns an error or panics, InTx rolls back and returns the error unchanged. If the commit
// fails without the server's own error message, the error is ErrUnknownOutcome.
//
// When the context ends, the transaction is rolled back. A COMMIT that was sent is not interrupted: MySQL's
// and SQLite's drivers pass no context to COMMIT, and internal/engine gives PostgreSQL's driver none either.
func InTx(ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) error, options ...*sql.TxOptions) error {
	tx := db.WithContext(ctx).Begin(options...)
	if tx.Error != nil {
		return DatabaseError(ctx, "begin", tx.Error)
	}
	open := true
	defer func() {
		if open {
			tx.Rollback() // ignores its error: a broken connection ends the transaction too
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	open = false
	return commitError(ctx, tx.Commit().Error)
}

// InLockingTx does the same as InTx for a transaction that reads in order to write. No other transaction can
// write a row that fn has read for update. On SQLite, which has no row locks, it uses BEGIN IMMEDIATE, the
// write lock of the whole file (https://www.sqlite.org/lang_transaction.html). On other databases fn must read
// with product.ForUpdate. The options are those of InTx.
func InLockingTx(ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) error, options ...*sql.TxOptions) error {
	if dialect.Of(db).RowLocks {
		return InTx(ctx, db, fn, options...)
	}
	connected := false
	err := db.WithContext(ctx).Connection(func(conn *gorm.DB) error {
		connected = true
		conn = conn.Session(&gorm.Session{}) // otherwise gorm would add the conditions of one statement to the next
		if err := conn.Exec("BEGIN IMMEDIATE").Error; err != nil {
			return DatabaseError(ctx, "begin immediate", err)
		}
		// The transaction must end even if ctx has ended, since the connection goes back to the pool.
		uncancelled := conn.WithContext(context.WithoutCancel(ctx))
		open := true
		defer func() {
			if open {
				uncancelled.Exec("ROLLBACK")
			}
		}()
		if err := fn(conn); err != nil {
			return err
		}
		if ctx.Err() != nil { // Commit of database/sql checks this too
			return DatabaseError(ctx, "commit", ctx.Err())
		}
		if err := uncancelled.Exec("COMMIT").Error; err != nil {
			return commitError(ctx, err)
		}
		open = false
		return nil
	})
	if !connected {
		return DatabaseError(ctx, "connect", err)
	}
	return err
}

func commitError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// database/sql saw that the context had ended, rolled back, and sent no COMMIT.
		return DatabaseError(ctx, "commit", err)
	case sqlerror.Definite(err):
		return DatabaseError(ctx, "commit", err)
	}
	return fmt.Errorf("commit: %w: %w", ErrUnknownOutcome, err)
}
