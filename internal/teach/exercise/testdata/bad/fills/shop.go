// Package bad asks for more memory than a learner's code may have.
package bad

import (
	"context"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit, nil} }

type shop struct {
	kit kata.Kit
	all []byte
}

// Buy is bad.
func (s *shop) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	s.all = make([]byte, 3<<30)
	return s.kit.Sell(ctx, o)
}
