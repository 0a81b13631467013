package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/locktest"
)

// redsyncKind is redsync on one node with its defaults: a TTL of 8 s, and a retry after 50 to 250 ms. The
// caller must renew the lock (Mutex.Extend), and Mutex.Until returns how long it is valid. The library does
// not signal a loss.
func redsyncKind() kind {
	return kind{name: "redsync", keys: oneKey, anywhere: true, connect: func(addr string, ttl time.Duration) (locktest.Client, error) {
		rdb := dial(addr)
		c := &redsyncClient{rdb: rdb, locks: redsync.New(goredis.NewPool(rdb))}
		if ttl > 0 {
			c.options = []redsync.Option{redsync.WithExpiry(ttl)}
		}
		return c, nil
	}}
}

type redsyncClient struct {
	rdb     redis.UniversalClient
	locks   *redsync.Redsync
	options []redsync.Option
}

// Lock asks again when redsync has given up, after 32 attempts.
func (c *redsyncClient) Lock(ctx context.Context, name string) (locktest.Lease, error) {
	m := c.locks.NewMutex(name, c.options...)
	for {
		err := m.LockContext(ctx)
		if err == nil {
			return redsyncLease{m}, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		var taken *redsync.ErrTaken
		gaveUp := errors.Is(err, redsync.ErrFailed) || errors.As(err, &taken)
		late := errors.Is(err, context.DeadlineExceeded) // redsync gives a node 5 % of the TTL to answer
		if !gaveUp && !late {
			return nil, err
		}
	}
}

func (c *redsyncClient) Close() error { return c.rdb.Close() }

type redsyncLease struct{ mutex *redsync.Mutex }

func (l redsyncLease) Unlock(ctx context.Context) error {
	ok, err := l.mutex.UnlockContext(ctx)
	if ok {
		return nil
	}
	return err
}
