package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// clientOf returns a client without a password that never retries a command. The caller must close it.
func clientOf(address string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address, DisableIdentity: true, MaxRetries: -1, DialTimeout: time.Second, ReadTimeout: 5 * time.Second})
}

// keysOf returns a server's keys of a product and their values. Every strategy puts the product's name into
// its keys. Values compare only between servers of the same kind.
//
// A sentinel closes all connections of a replica that it promotes, so keysOf repeats a command whose
// connection was closed.
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
	_ = c.ReadOnly(ctx) // lets a replica of a cluster answer, too; other servers return an error
	keys := map[string]string{}
	for all := c.Scan(ctx, 0, "*"+product+"*", 1000).Iterator(); ; {
		if !all.Next(ctx) {
			return keys, all.Err()
		}
		value, err := c.Dump(ctx, all.Val()).Result()
		if redis.HasErrorPrefix(err, "WRONGTYPE") { // the embedded Redis does not support DUMP of a hash
			var hash map[string]string
			hash, err = c.HGetAll(ctx, all.Val()).Result()
			value = fmt.Sprint(hash) // Sprint sorts the fields
		}
		if errors.Is(err, redis.Nil) { // the key has just expired
			continue
		}
		if err != nil {
			return nil, err
		}
		keys[all.Val()] = value
	}
}

// lacking counts the keys that the map `other` does not have, or has with another value.
func lacking(keys, other map[string]string) (n int) {
	for key, value := range keys {
		if there, ok := other[key]; !ok || there != value {
			n++
		}
	}
	return n
}

// restart kills a server and starts it again. A Redis comes back empty.
func restart(server engine.Restartable) error { return errors.Join(server.Kill(), server.Start()) }

func info(ctx context.Context, address, section string) (string, error) {
	c := clientOf(address)
	defer c.Close()
	return c.Info(ctx, section).Result()
}

// A redisNode is a Redis server. Its clock is nil if faults cannot move it.
type redisNode struct {
	*localserver.Redis
	clock *clock
}

func (r *redisNode) client() *redis.Client { return clientOf(r.Addr) }

func (r *redisNode) ended() bool {
	select {
	case <-r.Done():
		return true
	default:
		return false
	}
}

func (r *redisNode) keysOf(ctx context.Context, product string) (map[string]string, error) {
	return keysOf(ctx, r.Addr, product)
}

func (r *redisNode) replication(ctx context.Context) (string, error) {
	return info(ctx, r.Addr, "replication")
}

func (r *redisNode) clusterInfo(ctx context.Context) (string, error) {
	c := r.client()
	defer c.Close()
	return c.ClusterInfo(ctx).Result()
}

// replicaOf makes the server a replica of the server at address, host:port.
func (r *redisNode) replicaOf(ctx context.Context, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	c := r.client()
	defer c.Close()
	return c.ReplicaOf(ctx, host, port).Err()
}

// rewrite saves the server's settings for its next start.
func (r *redisNode) rewrite(ctx context.Context) error {
	c := r.client()
	defer c.Close()
	return c.ConfigRewrite(ctx).Err()
}

// ahead returns how far the server's clock is ahead of this process's clock.
func (r *redisNode) ahead(ctx context.Context) (time.Duration, error) {
	c := r.client()
	defer c.Close()
	now, err := c.Time(ctx).Result()
	return time.Until(now), err
}

// part locks out the user with which replicas connect, closes their connections, and proves that no replica
// follows.
func (r *redisNode) part(ctx context.Context) error {
	c := r.client()
	defer c.Close()
	if err := errors.Join(c.ACLSetUser(ctx, localserver.ReplicaUser, "off").Err(), c.ClientKillByFilter(ctx, "TYPE", "replica").Err()); err != nil {
		return err
	}
	alone, err := until(ctx, 10*time.Second, func() (bool, error) {
		replication, err := c.Info(ctx, "replication").Result()
		return strings.Contains(replication, "connected_slaves:0"), err
	})
	if err == nil && !alone {
		err = fmt.Errorf("%s still has replicas", r.Addr)
	}
	return err
}
