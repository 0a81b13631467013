package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// redisRestart kills Redis and starts it again without its data, while the
// holder stands inside its COMMIT.
func redisRestart() Fault {
	return Fault{Name: lockstrategy.RedisRestart, Stock: stock, Strike: func(ctx context.Context, s *Scene) (string, error) {
		if err := s.hold(ctx, failpoint.Commit, s.Times.Wait); err != nil {
			return "", err
		}
		before, err := s.Servers.redis.keys(ctx)
		if err != nil {
			return "", err
		}
		if err := s.Servers.redis.forget(); err != nil {
			return "", err
		}
		s.struck("SIGKILL of Redis, and back empty")
		after, err := s.Servers.redis.keys(ctx)
		if err != nil {
			return "", err
		}
		s.next(ctx, s.Times.within())
		if err := s.release(); err != nil {
			return "", err
		}
		if before == 0 || after >= before {
			return "", missed("Redis had %d keys before its restart and %d after it", before, after)
		}
		return fmt.Sprintf("the holder reported that it holds; Redis was killed and came back with %d of %d keys", after, before), nil
	}}
}

// forget kills the server and starts it again, empty.
func (r *redisNode) forget() error { return errors.Join(r.Kill(), r.Start()) }

func (r *redisNode) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: r.Addr, DisableIdentity: true})
}

func (r *redisNode) keys(ctx context.Context) (int64, error) {
	c := r.client()
	defer c.Close()
	return c.DBSize(ctx).Result()
}
