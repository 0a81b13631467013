// Package exercise is correct, and uses a transaction for each buyer.
package exercise

import (
	"context"

	"gorm.io/gorm"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy sells o.Amount units of o.Product to o.Purchaser.
func (s *shop) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	return s.sell(ctx, o)
}

// sell takes the units and records the sale, in one transaction.
func (s *shop) sell(ctx context.Context, o kata.Order) (receipt kata.Receipt, err error) {
	err = s.kit.InTx(ctx, func(tx *gorm.DB) error {
		rows, err := s.kit.Exec(ctx, tx, "UPDATE product SET amount = amount - ? WHERE name = ? AND amount >= ?", o.Amount, o.Product, o.Amount)
		if err != nil {
			return err
		}
		if rows == 0 {
			return kata.ErrSoldOut
		}
		p, err := s.kit.Read(ctx, tx, o.Product)
		if err != nil {
			return err
		}
		receipt, err = s.kit.Record(ctx, tx, o, p.Amount)
		return err
	})
	return receipt, err
}
