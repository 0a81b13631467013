// Package exercise has a lock for each product, and takes the locks in the order of the basket.
package exercise

import (
	"context"

	"gorm.io/gorm"

	"github.com/oversell/oversell/exercises/kata"
)

// New is called once in each process of the shop.
func New(kit kata.Kit) kata.Strategy { return &shop{kit} }

type shop struct{ kit kata.Kit }

// Buy sells one order.
func (s *shop) Buy(ctx context.Context, o kata.Order) (kata.Receipt, error) {
	receipts, err := s.BuyAll(ctx, []kata.Order{o})
	if err != nil {
		return kata.Receipt{}, err
	}
	return receipts[0], nil
}

// BuyAll sells all of the orders or none. Each order is for another product.
func (s *shop) BuyAll(ctx context.Context, orders []kata.Order) ([]kata.Receipt, error) {
	var products []string
	for _, o := range orders {
		products = append(products, o.Product)
	}
	for _, product := range products {
		key := "lock:" + product
		if err := s.lock(ctx, key); err != nil {
			return nil, err
		}
		defer s.kit.Redis.Del(context.WithoutCancel(ctx), key)
	}
	return s.sell(ctx, orders)
}

// sell sells all orders, while no other buyer sells these products.
func (s *shop) sell(ctx context.Context, orders []kata.Order) (receipts []kata.Receipt, err error) {
	left := make([]int64, len(orders))
	for i, o := range orders {
		p, err := s.kit.Read(ctx, s.kit.DB, o.Product)
		if err == nil {
			err = s.kit.Check(p, o)
		}
		if err != nil {
			return nil, err
		}
		left[i] = p.Amount - o.Amount
	}
	err = s.kit.InTx(ctx, func(tx *gorm.DB) error {
		for i, o := range orders {
			if _, err := s.kit.Exec(ctx, tx, "UPDATE product SET amount = ? WHERE name = ?", left[i], o.Product); err != nil {
				return err
			}
			receipt, err := s.kit.Record(ctx, tx, o, left[i])
			if err != nil {
				return err
			}
			receipts = append(receipts, receipt)
		}
		return nil
	})
	return receipts, err
}

// lock waits for the lock.
func (s *shop) lock(ctx context.Context, key string) error {
	for {
		taken, err := s.kit.Redis.SetNX(ctx, key, "1", 0).Result()
		if err != nil || taken {
			return err
		}
		if err := s.kit.Sleep(ctx); err != nil {
			return err
		}
	}
}
