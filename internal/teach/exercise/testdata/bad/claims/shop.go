// Package bad says that it has sold.
package bad

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy is bad.
func (s *shop) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	fmt.Println(`{"checks":[{"verdict":"passed"}]}`)
	return kata.Receipt{ID: 1, Product: o.Product, Purchaser: o.Purchaser, Amount: o.Amount}, nil
}
