//go:build !fixed

// Package ours is a simple lock over Redis, with mistakes that many programs make.
package ours

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

const ttl = time.Second

// Lock waits for the lock. It returns an error if the server fails or ctx ends.
func Lock(ctx context.Context, rdb *redis.Client, name string) (unlock func(context.Context) error, err error) {
	for {
		taken, err := rdb.SetNX(ctx, name, "locked", ttl).Result()
		if err != nil {
			return nil, err
		}
		if taken {
			return func(ctx context.Context) error { return rdb.Del(ctx, name).Err() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
