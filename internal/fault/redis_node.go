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

// info is a section of a Redis's INFO.
func info(ctx context.Context, address, section string) (string, error) {
	c := clientOf(address)
	defer c.Close()
	return c.Info(ctx, section).Result()
}

// A redisNode is a Redis with a clock that can be moved; nil where it cannot.
type redisNode struct {
	*localserver.Redis
	clock *clock
}

func (r *redisNode) client() *redis.Client { return clientOf(r.Addr) }

// ended reports whether the server was killed.
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

// replicaOf has the server follow another, host:port.
func (r *redisNode) replicaOf(ctx context.Context, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	c := r.client()
	defer c.Close()
	return c.ReplicaOf(ctx, host, port).Err()
}

// rewrite keeps the server's settings for its next start.
func (r *redisNode) rewrite(ctx context.Context) error {
	c := r.client()
	defer c.Close()
	return c.ConfigRewrite(ctx).Err()
}

// ahead is how far the server's clock is ahead of this process's.
func (r *redisNode) ahead(ctx context.Context) (time.Duration, error) {
	c := r.client()
	defer c.Close()
	now, err := c.Time(ctx).Result()
	return time.Until(now), err
}

// part keeps the replicas from what is written from now on: the user under which they follow
// is switched off, and their connections are closed. It proves that none follows.
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
