// Package topology has the names of the ways in which Redis is built: the catalogue
// promises by them, the engine finds out which it is, and faults strike some.
package topology

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The topologies.
const (
	Single   = "single"   // one server
	Sentinel = "sentinel" // a primary and its replicas, watched by sentinels that fail over
	Cluster  = "cluster"  // several primaries that share the keys by slot, each with replicas
)

// All lists them in display order.
func All() []string { return []string{Single, Sentinel, Cluster} }

// EachPrimary calls fn with each server that takes writes, one after the other: the nodes
// of a cluster that have slots, or the one server.
func EachPrimary(ctx context.Context, c redis.UniversalClient, fn func(redis.UniversalClient) error) error {
	cluster, ok := c.(*redis.ClusterClient)
	if !ok {
		return fn(c)
	}
	var one sync.Mutex
	return cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		one.Lock()
		defer one.Unlock()
		return fn(node)
	})
}

// A slot that moves is with its new server within this many tries.
const (
	tries      = 20
	tryAgainIn = 10 * time.Millisecond
)

// OnConn calls fn with one connection to the server that has the key, and returns its error:
// WAIT counts the replicas that have what was written on the connection on which it is
// sent. fn is called again when the server refuses its command since the key's slot is
// elsewhere: then it has done nothing.
func OnConn(ctx context.Context, c redis.UniversalClient, key string, fn func(*redis.Conn) error) error {
	cluster, several := c.(*redis.ClusterClient)
	for n := 1; ; n++ {
		node, one := c.(*redis.Client)
		if several {
			var err error
			if node, err = cluster.MasterForKey(ctx, key); err != nil {
				return err
			}
		} else if !one {
			return errors.New("this client has no connections to single out")
		}
		conn := node.Conn()
		err := fn(conn)
		_ = conn.Close() // back to the pool
		if !several || n == tries || !elsewhere(err) {
			if several && err != nil {
				cluster.ReloadState(ctx)
			}
			return err
		}
		cluster.ReloadState(ctx)
		time.Sleep(tryAgainIn)
	}
}

func elsewhere(err error) bool {
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask || redis.IsTryAgainError(err)
}
