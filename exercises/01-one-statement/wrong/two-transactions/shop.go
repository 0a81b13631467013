// Package exercise takes the units in a transaction of its own, after it has recorded the sale.
package exercise

import (
	"context"

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
	if err := s.kit.Check(p, o); err != nil {
		return receipt, err
	}
	receipt, err = s.kit.Record(ctx, s.kit.DB, o, p.Amount-o.Amount)
	if err != nil {
		return receipt, err
	}
	rows, err := s.kit.Exec(ctx, s.kit.DB, "UPDATE product SET amount = amount - ? WHERE name = ? AND amount >= ?", o.Amount, o.Product, o.Amount)
	if err == nil && rows == 0 {
		err = kata.ErrSoldOut
	}
	return receipt, err
}
