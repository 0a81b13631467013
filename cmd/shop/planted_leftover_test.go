package main

import (
	"context"
	"errors"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// leftOpen sells by a conditional update, and leaves the transaction of a refused buyer open.
type leftOpen struct{ lockstrategy.Deps }

func (s *leftOpen) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	receipt := purchase.NewReceipt(o, "left-open", 0, 0)
	tx := s.DB.WithContext(context.WithoutCancel(ctx)).Begin()
	took, err := product.TakeIfLeft(tx, o.Product, o.Amount)
	switch {
	case err != nil:
		tx.Rollback()
		return receipt, purchase.DatabaseError(ctx, "take the units", err)
	case !took: // the bug
		return receipt, purchase.ErrSoldOut
	}
	p, err := product.ByName(tx, o.Product)
	receipt.Left = p.Amount
	if err = errors.Join(err, purchase.Insert(ctx, tx, o.IdempotencyKey, time.Now(), &receipt)); err != nil {
		tx.Rollback()
		return receipt, err
	}
	return receipt, tx.Commit().Error
}

// neverReturning sells correctly, but Buy does not return to a refused buyer.
type neverReturning struct{ purchase.Strategy }

func (s *neverReturning) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	receipt, err := s.Strategy.Buy(ctx, o)
	if errors.Is(err, purchase.ErrSoldOut) { // the bug
		<-make(chan struct{})
	}
	return receipt, err
}
