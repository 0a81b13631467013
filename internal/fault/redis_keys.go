package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
)

// clientOf asks a Redis once, without a password. Close it.
func clientOf(address string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address, DisableIdentity: true, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: 5 * time.Second})
}

// keysOf returns a server's keys of a product, each with its value: every strategy puts the
// product's name into its keys. The values of servers of one kind compare.
//
// A sentinel closes all connections of a replica that it promotes, so a question that
// was cut off is asked again.
func keysOf(ctx context.Context, address, product string) (keys map[string]string, err error) {
	for range 3 {
		if keys, err = readKeys(ctx, address, product); !errors.Is(err, io.EOF) {
			break
		}
	}
	return keys, err
}

func readKeys(ctx context.Context, address, product string) (map[string]string, error) {
	client := clientOf(address)
	defer client.Close()
	c := client.Conn()
	defer c.Close()
	_ = c.ReadOnly(ctx) // a replica of a cluster answers then, too; elsewhere it is refused
	keys := map[string]string{}
	for all := c.Scan(ctx, 0, "*"+product+"*", 1000).Iterator(); ; {
		if !all.Next(ctx) {
			return keys, all.Err()
		}
		value, err := c.Dump(ctx, all.Val()).Result()
		if redis.HasErrorPrefix(err, "WRONGTYPE") { // the Redis of the embedded engine has no DUMP of a hash
			var hash map[string]string
			hash, err = c.HGetAll(ctx, all.Val()).Result()
			value = fmt.Sprint(hash) // sorted
		}
		if errors.Is(err, redis.Nil) { // it has just expired
			continue
		}
		if err != nil {
			return nil, err
		}
		keys[all.Val()] = value
	}
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

// restart kills a server and starts it again; a Redis comes back empty.
func restart(server engine.Restartable) error { return errors.Join(server.Kill(), server.Start()) }

func (r *redisNode) client() *redis.Client { return clientOf(r.Addr) }

func (r *redisNode) keysOf(ctx context.Context, product string) (map[string]string, error) {
	return keysOf(ctx, r.Addr, product)
}
