package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/plural"
)

// redisRestart kills Redis and restarts it without its data, while a buyer that holds the lock is stopped at
// its COMMIT.
func redisRestart() Fault {
	return Fault{
		Name: "redis-restart", About: "Redis is killed and restarts empty", Needs: redisAlone(), Stock: stock, Lease: longLease,
		Lacks: lacksRedis, Inject: redisRestartInCell, InRush: redisRestartInRush,
	}
}

func redisRestartInCell(ctx context.Context, t *Testbed) (string, error) {
	if _, err := t.hold(ctx, failpoint.Commit); err != nil {
		return "", err
	}
	held := time.Now()
	keeper, _, err := keeperOf(ctx, t)
	if err != nil {
		return "", err
	}
	return forgetInCell(ctx, t, keeper, "Redis", held)
}

// forgetInCell restarts a server while the holder is stopped, lets other buyers in, and proves that the
// server forgot the lock.
func forgetInCell(ctx context.Context, t *Testbed, server *redisNode, name string, held time.Time) (proof string, _ error) {
	before, err := server.keysOf(ctx, t.Product)
	if err != nil {
		return "", err
	}
	if err := restart(server); err != nil {
		return "", err
	}
	t.injected("SIGKILL of %s, and back empty", name)
	after, err := server.keysOf(ctx, t.Product)
	if err != nil {
		return "", err
	}
	if err := passOn(ctx, t, held); err != nil {
		return "", err
	}
	return forgot(name, before, after)
}

func redisRestartInRush(ctx context.Context, r *RunningRush) (string, error) {
	if _, err := r.hold(ctx, r.write); err != nil {
		return "", err
	}
	sold := r.tally.sold()
	keys, err := forget(ctx, ownRedis(r.Engine), r.product)
	if err != nil {
		return "", err
	}
	pauseFor(ctx, min(r.times.within(), time.Second))
	return fmt.Sprintf("Redis came back without %s of the product; others bought %s while a buyer was stopped before its write", plural.Count(keys, "key"), plural.Count(r.tally.sold()-sold, "unit")), nil
}

// keeperOf returns the server of a cell (two shops under one fault) that has the product's keys, and the keys.
func keeperOf(ctx context.Context, t *Testbed) (*redisNode, map[string]string, error) {
	if t.Servers.redises != nil {
		return t.Servers.redises.keeper(ctx, t.Product)
	}
	keys, err := t.Servers.redis.keysOf(ctx, t.Product)
	return t.Servers.redis, keys, err
}

// passOn lets other buyers try to buy, then lets the lock holder continue. With several Redis servers, it
// first waits until shop B finds Redis ready. `held` is when the holder was stopped. If B is ready only after
// half of the lease, passOn returns ErrMissed: another buyer might get in because the lease ends.
func passOn(ctx context.Context, t *Testbed, held time.Time) error {
	if within := t.Times.within(); t.Servers.redises != nil && (!t.B.Ready(ctx, within) || time.Since(held) > within) {
		return missed("Redis did not serve again within %s, half of the holder's lease", within)
	}
	t.others(ctx, 0, t.Times.within())
	return t.release()
}

// forgot proves that a server of a cell has forgotten the product's keys. It returns ErrMissed if a key is
// still there, for example because the server has loaded its file, or if there was none before.
func forgot(server string, before, after map[string]string) (proof string, _ error) {
	if left := len(before) - lacking(before, after); len(before) == 0 || left > 0 {
		return "", missed("%s had %d keys of the product before its restart and %d of them after it", server, len(before), left)
	}
	return fmt.Sprintf("the holder reported that it holds; %s was killed and came back without the product's %d keys", server, len(before)), nil
}

// mark is a key that the function forget writes before it kills the server. A restarted, empty server does not
// have it.
const mark = "oversell:struck"

// forget restarts a server in a running rush and returns how many keys of the product the server had. It
// returns ErrMissed if there were none, or if the server kept its data. The buyers of the rush write the
// product's keys again at once, so forget checks the key `mark`, which they do not write.
func forget(ctx context.Context, server engine.Restartable, product string) (keys int, err error) {
	had, err := keysOf(ctx, server.Address(), product)
	switch {
	case err != nil:
		return 0, err
	case len(had) == 0:
		return 0, missed("the server had no keys of the product to be forgotten")
	}
	before := clientOf(server.Address())
	defer before.Close()
	if err := before.Set(ctx, mark, "", 0).Err(); err != nil {
		return 0, err
	}
	if err := restart(server); err != nil {
		return 0, err
	}
	after := clientOf(server.Address()) // a new client, since the restart closed the first one's connection
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
