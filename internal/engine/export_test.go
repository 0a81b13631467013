package engine

import "github.com/redis/go-redis/v9"

// OnceOnCluster is the hook of a cluster's client.
func OnceOnCluster(c *redis.ClusterClient) redis.Hook { return onceOnCluster{c} }
