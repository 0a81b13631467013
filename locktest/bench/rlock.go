//go:build rlock

package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/locktest"
	"github.com/oversell/oversell/rlock"
)

// rlockKinds are the locks of package rlock with its defaults.
func rlockKinds() []kind {
	type lock interface {
		Lock(ctx context.Context) (*rlock.Lease, error)
	}
	make := func(name string, fair bool, of func(c *rlock.Client, name string) lock) kind {
		return kind{
			name: name, keys: oneKey, renews: true, renewEvery: 1.0 / 3, signalsLoss: true, fair: fair,
			connect: func(addr string, _ time.Duration) (locktest.Client, error) {
				rdb := dial(addr)
				c := rlock.New(rdb)
				return &rlockClient{rdb: rdb, lock: func(ctx context.Context, name string) (locktest.Lease, error) {
					l, err := of(c, name).Lock(ctx)
					if err != nil {
						return nil, err
					}
					return l, nil
				}}, nil
			},
		}
	}
	return []kind{
		make("rlock", false, func(c *rlock.Client, name string) lock { return c.Lock(name) }),
		make("rlock-fair", true, func(c *rlock.Client, name string) lock { return c.FairLock(name) }),
	}
}

type rlockClient struct {
	rdb  *redis.Client
	lock func(ctx context.Context, name string) (locktest.Lease, error)
}

func (c *rlockClient) Lock(ctx context.Context, name string) (locktest.Lease, error) {
	return c.lock(ctx, name)
}

func (c *rlockClient) Close() error { return c.rdb.Close() }
