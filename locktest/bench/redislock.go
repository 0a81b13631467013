package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/locktest"
)

// redislockKind is bsm/redislock with a linear back-off. The library leaves renewal to the caller
// (Lock.Refresh) and does not signal a loss.
func redislockKind(backOff time.Duration) kind {
	return kind{
		name: "redislock-" + backOff.String(), keys: oneKey, anywhere: true,
		connect: func(addr string, ttl time.Duration) (locktest.Client, error) {
			if ttl == 0 {
				ttl = unsetTTL
			}
			rdb := dial(addr)
			return &redislockClient{rdb: rdb, locks: redislock.New(rdb), ttl: ttl, backOff: backOff}, nil
		},
	}
}

type redislockClient struct {
	rdb          redis.UniversalClient
	locks        *redislock.Client
	ttl, backOff time.Duration
}

func (c *redislockClient) Lock(ctx context.Context, name string) (locktest.Lease, error) {
	if _, ok := ctx.Deadline(); !ok { // without a deadline, Obtain would give up after a TTL
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Hour)
		defer cancel()
	}
	l, err := c.locks.Obtain(ctx, name, c.ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(c.backOff)})
	if err != nil {
		return nil, err
	}
	return redislockLease{l}, nil
}

func (c *redislockClient) Close() error { return c.rdb.Close() }

type redislockLease struct{ lock *redislock.Lock }

func (l redislockLease) Unlock(ctx context.Context) error { return l.lock.Release(ctx) }
