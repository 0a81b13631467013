package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ForceUnlock frees the lock of any holder, and notifies the waiters. It returns false if no holder had it.
// The holder learns of the loss at its next renewal, by default at most a third of WatchdogTimeout later, or
// at Unlock.
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

// IsLocked reports whether any holder has the lock.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	return ask(ctx, l, "inspect", func(ctx context.Context) (bool, error) {
		n, err := l.client.redis.Exists(ctx, l.keys.lock).Result()
		return n == 1, err
	})
}

// HoldCount returns how often the Holder in ctx holds the lock, according to Redis. ctx contains a
// Holder if it comes from WithHolder or from a lease. Otherwise the count is 0.
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

// RemainingTTL returns how soon the lock expires unless it is renewed. It returns 0 if no holder
// has it. A negative duration means that the lock has no TTL, so this package did not make it.
func (l *Lock) RemainingTTL(ctx context.Context) (time.Duration, error) {
	return ask(ctx, l, "inspect", func(ctx context.Context) (time.Duration, error) {
		d, err := l.client.redis.PTTL(ctx, l.keys.lock).Result()
		if d == -2 { // PTTL: no such key
			return 0, err
		}
		return d, err
	})
}

func ask[T any](ctx context.Context, l *Lock, what string, f func(context.Context) (T, error)) (T, error) {
	var none T
	if err := l.check(); err != nil {
		return none, fmt.Errorf("rlock: %s %q: %w", what, l.keys.lock, err)
	}
	answer, answered, err := runInterruptibly(ctx, f, nil)
	if !answered {
		err = noAnswer(ctx)
	}
	if err != nil {
		return none, fmt.Errorf("rlock: %s %q: %w", what, l.keys.lock, err)
	}
	return answer, nil
}
