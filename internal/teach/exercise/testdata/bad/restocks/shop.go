// Package bad puts on sale what it sells.
package bad

import (
	"context"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy is bad.
func (s *shop) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	if _, err := s.kit.Exec(ctx, s.kit.DB, "UPDATE product SET amount = amount + 1, stocked = stocked + 1 WHERE name = ?", o.Product); err != nil {
		return kata.Receipt{}, err
	}
	return s.kit.Sell(ctx, o)
}
