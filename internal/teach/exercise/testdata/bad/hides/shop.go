// Package bad keeps a mutex where no variable of its own is: in the logger that all share.
package bad

import (
	"context"
	"io"
	"log"
	"sync"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy {
	all, there := log.Writer().(*shared)
	if !there {
		all = &shared{Writer: io.Discard}
		log.SetOutput(all)
	}
	return &shop{kit, all}
}

type shared struct {
	io.Writer
	mu sync.Mutex
}

type shop struct {
	kit kata.Kit
	all *shared
}

// Buy sells o.Amount units of o.Product to o.Purchaser.
func (s *shop) Buy(ctx context.Context, o kata.Order) (receipt kata.Receipt, err error) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	return s.kit.Sell(ctx, o)
}
