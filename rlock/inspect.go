package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ForceUnlock frees the lock, whoever holds it, and tells who waits; false
// when nobody held it. Its holder learns of it by its next renewal, a third of
// WatchdogTimeout later at most, or by Unlock.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	return ask(ctx, l, "force-unlock", func(ctx context.Context) (bool, error) {
		if l.kind == fair {
			n, err := fairForceUnlock.run(ctx, l.client.redis, l.keys.fair()).Int64()
			return n == 1, err
		}
		n, err := forceUnlock.run(ctx, l.client.redis, []string{l.keys.lock, l.keys.channel}).Int64()
		return n == 1, err
	})
}

// IsLocked reports whether anybody holds the lock.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	return ask(ctx, l, "inspect", func(ctx context.Context) (bool, error) {
		n, err := l.client.redis.Exists(ctx, l.keys.lock).Result()
		return n == 1, err
	})
}

// HoldCount returns how often the holder in ctx holds the lock, as Redis has
// it: WithHolder put it there, or it is the context of a lease. 0 without one.
func (l *Lock) HoldCount(ctx context.Context) (int, error) {
	holder, ok := holderOf(ctx)
	if !ok {
		return 0, nil
	}
	return ask(ctx, l, "inspect", func(ctx context.Context) (int, error) {
		n, err := l.client.redis.HGet(ctx, l.keys.lock, holder.field(l.client)).Int()
		if errors.Is(err, redis.Nil) {
			return 0, nil
		}
		return n, err
	})
}

// RemainingTTL returns when the lock runs out unless it is renewed; 0 when
// nobody holds it. Negative: it has no TTL, and was not made by this package.
func (l *Lock) RemainingTTL(ctx context.Context) (time.Duration, error) {
	return ask(ctx, l, "inspect", func(ctx context.Context) (time.Duration, error) {
		d, err := l.client.redis.PTTL(ctx, l.keys.lock).Result()
		if d == -2 { // PTTL: no such key
			return 0, err
		}
		return d, err
	})
}

// ask waits for the answer of Redis until ctx ends.
func ask[T any](ctx context.Context, l *Lock, what string, f func(context.Context) (T, error)) (T, error) {
	var none T
	if n := len(l.keys.lock); n == 0 || n > maxName {
		return none, fmt.Errorf("rlock: %s %q: %w", what, l.keys.lock, ErrBadName)
	}
	answer, answered, err := bounded(ctx, f, nil)
	if !answered {
		err = noAnswer(ctx)
	}
	if err != nil {
		return none, fmt.Errorf("rlock: %s %q: %w", what, l.keys.lock, err)
	}
	return answer, nil
}
