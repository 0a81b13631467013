package strike

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// serversOf are those of one need, as far as the engine has started them.
func serversOf(e *engine.Engine, need lockstrategy.Need) (servers []engine.LockServer) {
	for _, s := range e.LockServers {
		if s.Need == string(need) {
			servers = append(servers, s)
		}
	}
	return servers
}

// mark is a key that a server has when it is killed, and must not have when it is back.
const mark = "oversell:struck"

// forget kills a server and starts it again, empty, and returns how many keys of the product
// it had. ErrMissed where there were none, or it came back with what it had.
func forget(ctx context.Context, server engine.LockServer, product string) (keys int, err error) {
	before := fault.ClientOf(server.Address())
	defer before.Close()
	had, err := fault.Keys(ctx, before, product, func(string) (string, error) { return "", nil })
	switch {
	case err != nil:
		return 0, err
	case len(had) == 0:
		return 0, missed("the server had no keys of the product to be forgotten")
	}
	if err := before.Set(ctx, mark, "", 0).Err(); err != nil {
		return 0, err
	}
	if err := errors.Join(server.Kill(), server.Start()); err != nil {
		return 0, err
	}
	after := fault.ClientOf(server.Address()) // the other one's connection is gone
	defer after.Close()
	marked, err := after.Exists(ctx, mark).Result()
	switch {
	case err != nil:
		return 0, err
	case marked > 0:
		return 0, missed("the server came back with what it had")
	}
	return len(had), nil
}

// keysOn are the server's keys of the product, with what is in them: as text, so that those of
// several servers compare. The Redis of the embedded engine has no DUMP of a hash.
func keysOn(ctx context.Context, server engine.LockServer, product string) (map[string]string, error) {
	c := fault.ClientOf(server.Address())
	defer c.Close()
	return fault.Keys(ctx, c, product, func(key string) (string, error) {
		text, err := c.Get(ctx, key).Result()
		if redis.HasErrorPrefix(err, "WRONGTYPE") {
			var hash map[string]string
			hash, err = c.HGetAll(ctx, key).Result()
			text = fmt.Sprint(hash) // sorted
		}
		return text, err
	})
}

func drop(ctx context.Context, node engine.LockServer, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	c := fault.ClientOf(node.Address())
	defer c.Close()
	return c.Del(ctx, keys...).Err()
}
