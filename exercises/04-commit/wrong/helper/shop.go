// Package exercise has a helper that frees the lock well, around too little.
package exercise

import (
	"context"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy sells o.Amount units of o.Product to o.Purchaser.
func (s *shop) Buy(ctx context.Context, o kata.Order) (receipt kata.Receipt, err error) {
	tx := s.kit.DB.WithContext(ctx).Begin()
	if tx.Error != nil {
		return receipt, tx.Error
	}
	err = s.locked(ctx, "lock:"+o.Product, func() error {
		p, err := s.kit.Read(ctx, s.kit.DB, o.Product)
		if err == nil {
			err = s.kit.Check(p, o)
		}
		if err != nil {
			return err
		}
		if _, err := s.kit.Exec(ctx, tx, "UPDATE product SET amount = ? WHERE name = ?", p.Amount-o.Amount, o.Product); err != nil {
			return err
		}
		receipt, err = s.kit.Record(ctx, tx, o, p.Amount-o.Amount)
		return err
	})
	if err != nil {
		tx.Rollback()
		return kata.Receipt{}, err
	}
	return receipt, tx.Commit().Error
}

// locked runs fn under the lock.
func (s *shop) locked(ctx context.Context, key string, fn func() error) error {
	token := s.kit.Token()
	if err := s.lock(ctx, key, token); err != nil {
		return err
	}
	defer s.kit.DeleteIfMine(context.WithoutCancel(ctx), key, token) //nolint:errcheck // it runs out by itself
	return fn()
}

// lock waits for the lease.
func (s *shop) lock(ctx context.Context, key, token string) error {
	for {
		taken, err := s.kit.Redis.SetNX(ctx, key, token, s.kit.TTL).Result()
		if err != nil || taken {
			return err
		}
		if err := s.kit.Sleep(ctx); err != nil {
			return err
		}
	}
}
