// Package exercise sells one unit twice. Fix it with one statement.
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
func (s *shop) Buy(ctx context.Context, o kata.Order) (receipt kata.Receipt, err error) {
	p, err := s.kit.Read(ctx, s.kit.DB, o.Product)
	if err != nil {
		return receipt, err
	}
	if p.Amount < o.Amount {
		return receipt, kata.ErrSoldOut
	}
	left := p.Amount - o.Amount
	err = s.kit.InTx(ctx, func(tx *gorm.DB) error {
		if _, err := s.kit.Exec(ctx, tx, "UPDATE product SET amount = ? WHERE name = ?", left, o.Product); err != nil {
			return err
		}
		receipt, err = s.kit.Record(ctx, tx, o, left)
		return err
	})
	return receipt, err
}
