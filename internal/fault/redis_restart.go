package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/fault/failpoint"
)

// redisRestart kills Redis and starts it again without its data, while the
// holder stands inside its COMMIT.
func redisRestart() Fault {
	return Fault{
		Name: "redis-restart", About: "killed, and back empty", Needs: redisAlone(), Stock: stock, Lease: longLease,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			if err := t.hold(ctx, failpoint.Commit, t.Times.Wait); err != nil {
				return "", err
			}
			held := time.Now()
			keeper, before, err := t.Servers.keeper(ctx, t.Product)
			if err != nil {
				return "", err
			}
			if err := keeper.forget(); err != nil {
				return "", err
			}
			t.struck("SIGKILL of Redis, and back empty")
			after, err := keeper.keysOf(ctx, t.Product)
			if err != nil {
				return "", err
			}
			if err := t.servedAgain(ctx, held); err != nil {
				return "", err
			}
			sendNext(ctx, t, t.Times.within())
			if err := t.release(); err != nil {
				return "", err
			}
			return forgot("Redis", before, after)
		},
	}
}

// keeper is the server that has the product's keys, and the keys.
func (s *Servers) keeper(ctx context.Context, product string) (*redisNode, map[string]string, error) {
	if s.redises != nil {
		return s.redises.keeper(ctx, product)
	}
	keys, err := s.redis.keysOf(ctx, product)
	return s.redis, keys, err
}

// servedAgain waits until the next buyers' shop finds Redis ready, where that is several
// servers. held is when the holder held: what is shown must be over while its lease
// certainly lives, or the fault has missed.
func (t *Testbed) servedAgain(ctx context.Context, held time.Time) error {
	if t.Servers.redises == nil {
		return nil
	}
	if !t.B.Ready(ctx, t.Times.within()) || time.Since(held) > t.Times.within() {
		return missed("Redis did not serve again within %s, half of the holder's lease", t.Times.within())
	}
	return nil
}

// forgot is the proof that a server has forgotten the keys of the product. All that
// were there before must be gone: a server that came back with its file, or one on
// which the holder had no keys, proves nothing.
func forgot(server string, before, after map[string]string) (proof string, _ error) {
	if left := len(before) - lacking(before, after); len(before) == 0 || left > 0 {
		return "", missed("%s had %d keys of the product before its restart and %d of them after it", server, len(before), left)
	}
	return fmt.Sprintf("the holder reported that it holds; %s was killed and came back without the product's %d keys", server, len(before)), nil
}

// lacking counts the keys that other lacks or has with another value.
func lacking(keys, other map[string]string) (n int) {
	for key, value := range keys {
		if there, ok := other[key]; !ok || there != value {
			n++
		}
	}
	return n
}

// forget kills the server and starts it again, empty.
func (r *redisNode) forget() error { return errors.Join(r.Kill(), r.Start()) }

func (r *redisNode) client() *redis.Client {
	return ClientOf(r.Addr)
}

// keysOf returns the server's keys of a product: every strategy puts the product's
// name into its keys. The values are as DUMP gives them.
//
// A sentinel closes all connections of a replica that it promotes, so a question that
// was cut off is asked again.
func (r *redisNode) keysOf(ctx context.Context, product string) (keys map[string]string, err error) {
	for range 3 {
		if keys, err = r.readKeys(ctx, product); !errors.Is(err, io.EOF) {
			break
		}
	}
	return keys, err
}

func (r *redisNode) readKeys(ctx context.Context, product string) (map[string]string, error) {
	client := r.client()
	defer client.Close()
	c := client.Conn()
	defer c.Close()
	_ = c.ReadOnly(ctx) // a replica of a cluster answers then, too; elsewhere it is refused
	return Keys(ctx, c, product, func(key string) (string, error) { return c.Dump(ctx, key).Result() })
}

// Keys are a server's keys of a product, each with its value as read has it.
func Keys(ctx context.Context, c redis.Cmdable, product string, read func(key string) (string, error)) (map[string]string, error) {
	keys := map[string]string{}
	for all := c.Scan(ctx, 0, "*"+product+"*", 1000).Iterator(); ; {
		if !all.Next(ctx) {
			return keys, all.Err()
		}
		value, err := read(all.Val())
		if errors.Is(err, redis.Nil) { // it has just expired
			continue
		}
		if err != nil {
			return nil, err
		}
		keys[all.Val()] = value
	}
}
