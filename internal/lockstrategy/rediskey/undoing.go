package rediskey

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
)

// DeleteIfMine is the script with which Undoing deletes a key.
//
//go:embed delete_if_mine.lua
var DeleteIfMine string

// Undoing reverts each failed attempt to take a lock. A Redis that hung may still execute the
// attempt, and would then grant the lock to a buyer that has left. The key's value must be the
// token.
type Undoing struct {
	Lock
	Redis  redis.UniversalClient
	TTL    time.Duration
	script *redis.Script
}

// NewUndoing wraps a lock whose keys live for Settings.LeaseTTL.
func NewUndoing(d deps.Deps, l Lock) Undoing {
	return Undoing{l, d.Redis, d.Settings.LeaseTTL, redis.NewScript(DeleteIfMine)}
}

// Take implements Lock.
func (u Undoing) Take(ctx context.Context, key, token string) (lease.Lease, error) {
	asked := time.Now()
	held, err := u.Lock.Take(ctx, key, token)
	if err != nil {
		go u.undo(context.WithoutCancel(ctx), asked, key, token)
	}
	return held, err
}

// undo gives up once the lease must have expired, or the shop has closed its client.
func (u Undoing) undo(ctx context.Context, asked time.Time, key, token string) {
	for time.Since(asked) < u.TTL {
		err := u.script.Run(ctx, u.Redis, []string{key}, token).Err()
		if err == nil || errors.Is(err, redis.ErrClosed) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
