package purchase

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/sqlerror"
	"github.com/oversell/oversell/internal/product"
)

// heldPatience is how long a transaction may stay open after every buyer has its answer. It is far
// longer than the rollback of one transaction takes.
const heldPatience = 8 * time.Second

// Held describes a transaction that a strategy has left open, so that it still locks the row of a product
// after every buyer has its answer. Held returns "" if it can lock the row itself within 8 s (heldPatience).
// The pool db must not share connections with the buyers. The error comes from the database or from ctx.
func Held(ctx context.Context, db *gorm.DB, name string) (string, error) {
	trying, cancel := context.WithTimeout(ctx, heldPatience)
	defer cancel()
	locked := make(chan error, 1)
	go func() { // SQLite's driver may wait for a lock longer than its context allows
		locked <- InLockingTx(trying, db, func(tx *gorm.DB) error {
			_, err := product.ForUpdate(tx, name)
			return err
		})
	}()
	var err error
	select {
	case err = <-locked:
	case <-trying.Done():
		err = trying.Err()
	}
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err == nil:
		return "", nil
	case !errors.Is(err, context.DeadlineExceeded) && sqlerror.KindOf(err) != sqlerror.Contended:
		return "", err
	}
	return fmt.Sprintf("every buyer is answered, and for %s a transaction that was left open has locked the stock: %s",
		heldPatience, openTransactions(ctx, db)), nil
}

// openTransactions describes the transactions of idle connections, if the database shows them.
func openTransactions(ctx context.Context, db *gorm.DB) string {
	question := dialect.Of(db).OpenTransactions
	if question == "" {
		return "the database does not show which connection"
	}
	var found []string
	if err := db.WithContext(ctx).Raw(question).Scan(&found).Error; err != nil {
		return "it is not known which connection: " + err.Error()
	}
	return strings.Join(found, "; ")
}
