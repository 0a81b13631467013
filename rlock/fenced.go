package rlock

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// NewFencedLock returns a lock with fencing tokens: each grant, also a reentrant one, has a greater token
// (Lease.Token) than the one before. The counter of the tokens outlives the lock, as long as Redis keeps its
// data.
//
// A lease cannot prevent a process that was paused from writing after it has lost the lease. The target of
// the write can prevent that: it refuses a token below the greatest one that it has seen.
//
// Source: Redisson, RedissonFencedLock; M. Kleppmann, "How to do distributed locking", 2016.
func (c *Client) NewFencedLock(name string) *Lock { return &Lock{redisLock{c, fenced, namesOf(name)}} }

// tokenKeys returns the keys of a script that grants a lock which is not fair.
func (l *redisLock) tokenKeys(lock string) []string {
	if l.kind == fenced {
		return []string{lock, l.keys.token}
	}
	return []string{lock}
}

// RaiseToken makes every later token greater than atLeast. Use it after Redis has lost its data. The target of
// the writes remembers greater tokens, and would refuse every holder until the counter has caught up. A value
// that is too high does no harm below 2^53. Above 2^53 the numbers of Lua are not exact, and two grants may
// have the same token. RaiseToken does nothing if the lock is not fenced.
func (l *Lock) RaiseToken(ctx context.Context, atLeast int64) error {
	if l.kind != fenced {
		return nil
	}
	_, err := ask(ctx, l, "raise the token of", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, raiseToken.run(ctx, l.client.redis, []string{l.keys.token}, atLeast).Err()
	})
	return err
}

// Token returns the last token that was granted to any holder. It returns 0 if none was granted or
// the lock is not fenced.
func (l *Lock) Token(ctx context.Context) (int64, error) {
	if l.kind != fenced {
		return 0, nil
	}
	return ask(ctx, l, "token of", func(ctx context.Context) (int64, error) {
		token, err := l.client.redis.Get(ctx, l.keys.token).Int64()
		if errors.Is(err, redis.Nil) {
			return 0, nil
		}
		return token, err
	})
}
