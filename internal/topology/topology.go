// Package topology has the names of the ways in which Redis is built: the catalogue
// promises by them, the engine finds out which it is, and faults strike some.
package topology

import (
	"context"
	"sync"

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
