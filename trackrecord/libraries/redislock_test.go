package libraries

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

type retry func() time.Duration

func (r retry) NextBackoff() time.Duration { return r() }

// TestRedislock83: Refresh accepts a RetryStrategy and ignores it. Redis is down for a moment, and
// the holder gives up although its lock still exists. https://github.com/bsm/redislock/pull/83
func TestRedislock83(t *testing.T) {
	t.Parallel()
	server, err := localserver.StartDurableRedis(localservertest.Group(t))
	must(t, err)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	lock, err := redislock.New(rdb).Obtain(t.Context(), "apple", time.Minute, nil)
	must(t, err)
	must(t, server.Kill())
	asked := 0
	refreshed := lock.Refresh(t.Context(), time.Minute, &redislock.Options{RetryStrategy: retry(func() time.Duration {
		if asked++; asked == 1 {
			must(t, server.Start()) // its append-only file still contains the lock
		}
		return time.Millisecond
	})})
	if asked == 0 {
		must(t, server.Start())
	}
	if left, err := lock.TTL(t.Context()); err != nil || left == 0 {
		t.Fatalf("%s left, %v; want that the lock survived: it proves nothing else", left, err)
	}
	bug{redislock.New, "v0.10.0"}.judge(t, refreshed != nil && asked == 0, fmt.Sprintf(
		"Redis was away once; the RetryStrategy was asked %d times; Refresh: %v; the lock was there all the time", asked, refreshed))
}

// TestRedislock58: the pause between two attempts keeps its first value, so an exponential back-off
// does not back off. https://github.com/bsm/redislock/pull/58
func TestRedislock58(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: startRedis(t).Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	locks := redislock.New(rdb)
	_, err := locks.Obtain(t.Context(), "apple", time.Hour, nil)
	must(t, err)
	const many = 20
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var tries atomic.Int64
	_, err = locks.Obtain(ctx, "apple", time.Hour, &redislock.Options{RetryStrategy: retry(func() time.Duration {
		switch n := tries.Add(1); {
		case n == 1:
			return time.Millisecond
		case n == many:
			return 0 // give up now
		}
		return time.Hour
	})})
	if !errors.Is(err, redislock.ErrNotObtained) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v, want that another client has the lock", err)
	}
	bug{redislock.New, "v0.9.1"}.judge(t, tries.Load() == many, fmt.Sprintf(
		"pauses of 1 ms, 1 h, 1 h, ... were asked for; in 3 s or less it tried %d times", tries.Load()))
}
