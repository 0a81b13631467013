// Package exercise is the reference: it answers with the sale that has the key, if there is one. It
// looks for that sale before its own sale, and again if the database refuses its own sale.
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
	if o.IdempotencyKey == "" {
		return s.sell(ctx, o)
	}
	if earlier, err := s.kit.Sold(ctx, s.kit.DB, o.IdempotencyKey); earlier != nil {
		return *earlier, nil
	} else if err != nil {
		return kata.Receipt{}, err
	}
	receipt, err := s.sell(ctx, o)
	if err == nil {
		return receipt, nil
	}
	// Another request with this key may have sold meanwhile. Then the index has rejected this
	// record, or the last unit is gone.
	if earlier, _ := s.kit.Sold(ctx, s.kit.DB, o.IdempotencyKey); earlier != nil {
		return *earlier, nil
	}
	return receipt, err
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
