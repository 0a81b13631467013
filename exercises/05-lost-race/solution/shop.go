// Package exercise is the reference: a buyer that lost the race starts again with a read.
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
	for {
		receipt, won, err := s.once(ctx, o)
		if won || err != nil {
			return receipt, err
		}
		if err := s.kit.Sleep(ctx); err != nil {
			return receipt, err
		}
	}
}

// once writes the computed stock, unless another buyer was faster.
func (s *shop) once(ctx context.Context, o kata.Order) (receipt kata.Receipt, won bool, err error) {
	p, err := s.kit.Read(ctx, s.kit.DB, o.Product)
	if err == nil {
		err = s.kit.Check(p, o)
	}
	if err != nil {
		return receipt, false, err
	}
	err = s.kit.InTx(ctx, func(tx *gorm.DB) error {
		rows, err := s.kit.Exec(ctx, tx, "UPDATE product SET amount = ?, version = version + 1 WHERE name = ? AND version = ?", p.Amount-o.Amount, o.Product, p.Version)
		if err != nil || rows == 0 {
			return err
		}
		won = true
		receipt, err = s.kit.Record(ctx, tx, o, p.Amount-o.Amount)
		return err
	})
	return receipt, won, err
}
