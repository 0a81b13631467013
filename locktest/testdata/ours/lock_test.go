package ours

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/locktest"
)

func TestOurLock(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("REDIS_ADDR")})
	locktest.Run(t, locktest.Subject{
		Name: "ours", TTL: ttl,
		Connect: locktest.Connect(func(ctx context.Context, name string) (func(context.Context) error, error) {
			return Lock(ctx, rdb, name)
		}),
		Forget: func(ctx context.Context, name string) error { return rdb.Del(ctx, name).Err() },
	})
}
