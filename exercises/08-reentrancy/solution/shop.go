// Package exercise is the reference: the lock knows its holder and counts its calls. The last
// unlock releases it.
package exercise

import (
	"context"

	"gorm.io/gorm"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy reads the stock and sells by what it has read.
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

// Stock reads the stock while no buyer changes it. It is called from outside, too, so it takes the
// lock itself.
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

// lock waits for the lock of a product, unless the buyer of ctx already has it. The returned
// context carries the lock.
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

// unlock undoes one call of lock.
func (s *shop) unlock(ctx context.Context, key string, held *hold) {
	if held.times--; held.times == 0 {
		_, _ = s.kit.DeleteIfMine(context.WithoutCancel(ctx), key, held.token)
	}
}
