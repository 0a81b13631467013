package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/locktest"
	"github.com/oversell/oversell/rlock"
)

// rlockKinds are the locks of package rlock, with its defaults: a lease of 30 s, a renewal every 10 s,
// and at most 16 handovers in a row within a process.
func rlockKinds() []kind {
	return []kind{
		rlockKind("rlock", false, (*rlock.Client).NewLock),
		rlockKind("rlock-fair", true, (*rlock.Client).NewFairLock),
	}
}

func rlockKind(name string, fair bool, lock func(c *rlock.Client, name string) *rlock.Lock) kind {
	k := kind{
		name: name, keys: oneKey, anywhere: true, renews: true, renewEvery: 1.0 / 3, signalsLoss: true, fair: fair,
		connect: func(addr string, ttl time.Duration) (locktest.Client, error) {
			rdb := dial(addr)
			var options []rlock.ClientOption
			if ttl > 0 {
				options = append(options, rlock.WatchdogTimeout(ttl))
			}
			return &rlockClient{rdb: rdb, locks: rlock.New(rdb, options...), lock: lock}, nil
		},
	}
	if fair {
		k.queue = func(name string) string { return "redisson_lock_queue:{" + name + "}" }
	}
	return k
}

type rlockClient struct {
	rdb   redis.UniversalClient
	locks *rlock.Client
	lock  func(c *rlock.Client, name string) *rlock.Lock
}

func (c *rlockClient) Lock(ctx context.Context, name string) (locktest.Lease, error) {
	l, err := c.lock(c.locks, name).Lock(ctx)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (c *rlockClient) Close() error {
	err := c.locks.Close()
	if closeErr := c.rdb.Close(); err == nil {
		err = closeErr
	}
	return err
}
