// Package exercise does not count: the first release frees the lock.
package exercise

import (
	"context"

	"gorm.io/gorm"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy looks at the stock, and sells by what it has seen.
func (s *shop) Buy(ctx context.Context, o kata.Order) (receipt kata.Receipt, err error) {
	ctx, unlock, err := s.lock(ctx, o.Product)
	if err != nil {
		return receipt, err
	}
	defer unlock()
	p, err := s.Stock(ctx, o.Product)
	if err == nil {
		err = s.kit.Check(p, o)
	}
	if err != nil {
		return receipt, err
	}
	err = s.kit.InTx(ctx, func(tx *gorm.DB) error {
		if _, err := s.kit.Exec(ctx, tx, "UPDATE product SET amount = ? WHERE name = ?", p.Amount-o.Amount, o.Product); err != nil {
			return err
		}
		receipt, err = s.kit.Record(ctx, tx, o, p.Amount-o.Amount)
		return err
	})
	return receipt, err
}

// Stock reads the stock when nobody sells. Others than Buy call it, too, so it takes the lock itself.
func (s *shop) Stock(ctx context.Context, product string) (kata.Product, error) {
	ctx, unlock, err := s.lock(ctx, product)
	if err != nil {
		return kata.Product{}, err
	}
	defer unlock()
	return s.kit.Read(ctx, s.kit.DB, product)
}

// A hold is a lock that the buyer of a context has.
type hold struct {
	product, token string
	times          int
}

type holdKey struct{}

// lock waits for the lock of a product, unless the context's buyer has it already. The context
// that it returns knows that.
func (s *shop) lock(ctx context.Context, product string) (_ context.Context, unlock func(), _ error) {
	key := "lock:" + product
	held, _ := ctx.Value(holdKey{}).(*hold)
	if held != nil && held.product == product {
		held.times++
		return ctx, func() { s.unlock(ctx, key, held) }, nil
	}
	held = &hold{product, s.kit.Token(), 1}
	for {
		taken, err := s.kit.Redis.SetNX(ctx, key, held.token, 0).Result()
		if err != nil {
			return ctx, nil, err
		}
		if taken {
			return context.WithValue(ctx, holdKey{}, held), func() { s.unlock(ctx, key, held) }, nil
		}
		if err := s.kit.Sleep(ctx); err != nil {
			return ctx, nil, err
		}
	}
}

// unlock gives the lock back once.
func (s *shop) unlock(ctx context.Context, key string, held *hold) {
	_, _ = s.kit.DeleteIfMine(context.WithoutCancel(ctx), key, held.token)
}
