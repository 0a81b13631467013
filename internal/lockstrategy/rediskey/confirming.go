package rediskey

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/lease"
)

// Confirmed wraps a lock. If too few replicas of Redis have stored a granted lock, Confirmed gives it back. The
// buyer may try again, unless Redis has failed. The lock must send its scripts through the function Client.
type Confirmed struct{ Lock }

func (c Confirmed) Take(ctx context.Context, key, token string) (lease.Lease, error) {
	asking, confirmed := asking(ctx)
	held, err := c.Lock.Take(asking, key, token)
	if held == nil || confirmed() {
		return held, err
	}
	err = held.Release(context.WithoutCancel(ctx))
	if errors.Is(err, lease.ErrNotHeld) { // the grant has expired, or was lost with its server
		err = nil
	}
	return nil, err
}

// Confirm wraps a lock in Confirmed if Settings.Replicas asks for replicas.
func Confirm(d deps.Deps, l Lock) Lock {
	if d.Settings.Replicas > 0 {
		return Confirmed{l}
	}
	return l
}

// Client returns the Redis client for a lock that Confirm wraps.
func Client(d deps.Deps) redis.Scripter {
	if d.Settings.Replicas > 0 {
		return confirming{d.Redis, d.Redis, d.Settings.Replicas, d.Settings.ReplicateWithin()}
	}
	return d.Redis
}

// confirming is a Redis client that waits after a script until the replicas have its writes (Redis
// documentation, WAIT). It does so only if the script's context comes from the function `asking`. It is
// safe for concurrent use.
type confirming struct {
	redis.Scripter // only the methods that a lock calls: 600 more methods would make the binary larger
	client         redis.UniversalClient
	replicas       int
	within         time.Duration
}

type askingKey struct{}

// asking returns a context for one attempt to take a lock. After the attempt, the function `confirmed`
// reports whether the replicas had the lock in time.
func asking(ctx context.Context) (_ context.Context, confirmed func() bool) {
	var yes bool
	return context.WithValue(ctx, askingKey{}, &yes), func() bool { return yes }
}

func (c confirming) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, keys, func(s redis.Scripter) *redis.Cmd { return s.EvalSha(ctx, sha, keys, args...) })
}

func (c confirming) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, keys, func(s redis.Scripter) *redis.Cmd { return s.Eval(ctx, script, keys, args...) })
}

func (c confirming) run(ctx context.Context, keys []string, send func(redis.Scripter) *redis.Cmd) (cmd *redis.Cmd) {
	confirmed, asking := ctx.Value(askingKey{}).(*bool)
	if !asking {
		return send(c.client)
	}
	err := topology.OnConn(ctx, c.client, keys[0], func(conn *redis.Conn) error {
		if cmd = send(conn); cmd.Err() != nil {
			return cmd.Err()
		}
		n, err := topology.Wait(ctx, conn, c.replicas, c.within)
		*confirmed = err == nil && n >= int64(c.replicas)
		return nil // the grant is valid, confirmed or not
	})
	if cmd == nil { // the client got no connection
		cmd = redis.NewCmd(ctx)
		cmd.SetErr(err)
	}
	return cmd
}
