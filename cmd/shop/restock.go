package main

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// restock resets a product with its records and its locks, while no buy of
// this process is in flight. The locks go first: when their server is down,
// stock and records are as they were.
func (s *shop) restock(ctx context.Context, name string, amount int64) error {
	if err := s.databaseDown(ctx); err != nil { // before the buyers are held back
		return fmt.Errorf("nothing was restocked: %w", err)
	}
	return s.counter.Closed(ctx, name, func() error {
		for _, lock := range s.locks {
			if err := lock.Reset(ctx, name); err != nil {
				return fmt.Errorf("nothing was restocked: %w", err)
			}
		}
		err := purchase.InLockingTx(ctx, s.engine.Admin, func(tx *gorm.DB) error {
			if err := product.Put(tx, name, amount); err != nil {
				return purchase.DatabaseError(ctx, "restock", err)
			}
			return purchase.DatabaseError(ctx, "clear the records", purchase.Clear(tx, name))
		})
		for _, lock := range s.locks {
			if keeper, ok := lock.(purchase.StockKeeper); ok && err == nil {
				err = keeper.Reset(ctx, name)
			}
		}
		if err == nil {
			err = purchase.DatabaseError(ctx, "restock", s.engine.Settle(ctx))
		}
		if err == nil {
			s.watch.publish(history.Event{Kind: history.Restocked, At: time.Now(), Product: name, Amount: amount})
			s.room.Restocked(name, amount)
		}
		return err
	})
}
