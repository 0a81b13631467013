package rlock

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/require"
)

// TestPollAfter: for any TTL that Redis reports, a waiter pauses between two attempts.
func TestPollAfter(t *testing.T) {
	l := &redisLock{client: &Client{watchdog: time.Second}}
	for _, ms := range []int64{math.MinInt64, -2, -1, 0, 1, maxPoll, maxPoll + 1, math.MaxInt64} {
		if got := l.pollAfter(ms); got <= 0 {
			t.Errorf("PTTL %d: a wait of %v", ms, got)
		}
	}
}

// FuzzRedisValues: with any values under the keys of a lock, each method returns without a panic. A
// caller that gets the lock can give it back, and a token is greater than 0.
func FuzzRedisValues(f *testing.F) {
	server := miniredis.NewMiniRedis()
	require.NoError(f, server.Start())
	f.Cleanup(server.Close)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	f.Cleanup(func() { _ = rdb.Close() })
	client := New(rdb, WatchdogTimeout(time.Minute), ID("fuzz"))
	f.Cleanup(func() { _ = client.Close() })

	for kind := range uint8(3) {
		for key := range uint8(5) {
			f.Add(kind, key, uint8(0), "", "9223372036854775807", int64(0))
			f.Add(kind, key, uint8(1), "fuzz:1", "x", int64(math.MaxInt64/1_000_000))
			f.Add(kind, key, uint8(2), "", "fuzz:1", int64(-1))
			f.Add(kind, key, uint8(3), "fuzz:1", "1e300", int64(1))
			f.Add(kind, key, uint8(4), "a", "-inf", int64(0))
		}
	}
	f.Fuzz(func(t *testing.T, kind, key, how uint8, field, value string, ttl int64) {
		server.FlushAll()
		lock := []*Lock{client.NewLock("any"), client.NewFencedLock("any"), client.NewFairLock("any")}[kind%3]
		k := lock.keys
		name := []string{k.lock, k.token, k.queue, k.timeouts, k.channel}[key%5]
		ctx := WithHolder(t.Context(), NewHolder())
		switch how % 5 { // Redis has refused this value
		case 0:
			_ = rdb.Set(ctx, name, value, 0).Err()
		case 1:
			_ = rdb.HSet(ctx, name, field, value).Err()
		case 2:
			_ = rdb.RPush(ctx, name, value, field).Err()
		case 3:
			_ = rdb.Do(ctx, "ZADD", name, value, field).Err()
			_ = rdb.RPush(ctx, k.queue, field).Err()
		case 4:
			_ = rdb.SAdd(ctx, name, value, field).Err()
		}
		if ttl > 0 {
			_ = rdb.Do(ctx, "PEXPIRE", name, ttl).Err()
		}
		_, _ = lock.Token(ctx)
		_, _ = lock.HoldCount(ctx)
		_, _ = lock.IsLocked(ctx)
		_, _ = lock.RemainingTTL(ctx)
		lease, err := lock.TryLock(ctx)
		switch {
		case err != nil && (lease != nil || !strings.HasPrefix(err.Error(), "rlock: ")):
			t.Fatalf("%v, %v", lease, err)
		case err == nil:
			if has := rdb.HExists(ctx, k.lock, lease.Holder()).Val(); !has {
				t.Errorf("Redis does not know the holder %s", lease.Holder())
			}
			if token, _ := lock.Token(ctx); token != lease.Token() && max(token, -token) < 1<<53 { // see RaiseToken for the numbers above 2^53
				t.Errorf("token %d, and Redis has %d", lease.Token(), token)
			}
			if err := lease.Unlock(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, ErrNotHeld) && !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("unlock: %v", err)
			}
		}
		_ = lock.RaiseToken(ctx, 7)
		_, _ = lock.ForceUnlock(ctx)
	})
}
