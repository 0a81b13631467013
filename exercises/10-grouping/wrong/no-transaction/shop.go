// Package exercise has no transaction: each statement is one by itself, and a buyer writes twice.
package exercise

import (
	"context"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy sells o.Amount units of o.Product to o.Purchaser.
func (s *shop) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	rows, err := s.kit.Exec(ctx, s.kit.DB, "UPDATE product SET amount = amount - ? WHERE name = ? AND amount >= ?", o.Amount, o.Product, o.Amount)
	if err != nil {
		return kata.Receipt{}, err
	}
	if rows == 0 {
		return kata.Receipt{}, kata.ErrSoldOut
	}
	p, err := s.kit.Read(ctx, s.kit.DB, o.Product)
	if err != nil {
		return kata.Receipt{}, err
	}
	return s.kit.Record(ctx, s.kit.DB, o, p.Amount)
}
