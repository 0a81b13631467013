// Package bad never returns.
package bad

import (
	"context"
	"time"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy is bad.
func (s *shop) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	for n := 0; ; n++ {
		time.Sleep(time.Millisecond) // what burns a processor would slow the tests beside it
		if n < 0 && ctx.Err() != nil {
			return s.kit.Sell(ctx, o)
		}
	}
}
