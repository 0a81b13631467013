//go:build fixed

// Package ours is a lock over Redis that releases only its own lease.
package ours

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"
)

const ttl = time.Second

var release = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

// Lock waits for the lock. It returns an error if the server fails or ctx ends.
func Lock(ctx context.Context, rdb *redis.Client, name string) (unlock func(context.Context) error, err error) {
	token := rand.Text()
	for {
		taken, err := rdb.SetNX(ctx, name, token, ttl).Result()
		if err != nil {
			return nil, err
		}
		if taken {
			return func(ctx context.Context) error { return release.Run(ctx, rdb, []string{name}, token).Err() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
