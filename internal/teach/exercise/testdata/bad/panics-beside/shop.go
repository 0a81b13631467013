// Package bad panics in a goroutine of its own.
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
	done := make(chan bool)
	go func() {
		var sold map[string]int
		sold[o.Purchaser]++
		close(done)
	}()
	<-done
	return s.kit.Sell(ctx, o)
}
