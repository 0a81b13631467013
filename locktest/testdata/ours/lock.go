//go:build !fixed

// Package ours is a lock over Redis, as many programs contain it.
package ours

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

const ttl = time.Second

// Lock waits for the lock. Its error is that of the server or of ctx.
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
