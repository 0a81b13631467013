package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
)

// openCluster opens a Redis Cluster through some of its nodes, which know the others.
func openCluster(ctx context.Context, e *Engine) error {
	l, err := parseHostList(e.URLs.Redis, "6379")
	if err != nil {
		return fmt.Errorf("%w; use %s", err, redisExamples())
	}
	if l.path != "" {
		return fmt.Errorf("the path %q: a Redis Cluster has one database and no name; use %s", l.path, redisKinds()[2].example)
	}
	o := e.URLs.redisOptions()
	o.Addrs, o.Username, o.Password = l.hosts, l.user, l.password
	if err := askNodes(ctx, e, l, o); err != nil {
		return err
	}
	newClient := func() *redis.ClusterClient {
		options := o.Cluster()
		options.MaxRedirects, options.MinRetryBackoff, options.MaxRetryBackoff = maxRedirects, 5*time.Millisecond, 50*time.Millisecond
		options.DisableRoutingPolicies = true // route a command only by its key
		client := redis.NewClusterClient(options)
		e.onClose(client.Close)
		return client
	}
	client, pinger := newClient(), newClient()
	client.AddHook(onceOnCluster{client})
	e.Redis, e.Topology = client, topology.Cluster
	e.pingRedis = func(ctx context.Context) error {
		return pinger.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			info, err := node.ClusterInfo(ctx).Result()
			if err == nil && !strings.Contains(info, "cluster_state:ok") {
				err = errors.New("CLUSTERDOWN: not every slot is served")
			}
			return err
		})
	}
	return nil
}

// askNodes rejects hosts that are not nodes of a cluster.
func askNodes(ctx context.Context, e *Engine, l hostList, o *redis.UniversalOptions) error {
	return l.checkReachable(e, l.ask(ctx, o, func(ctx context.Context, client *redis.Client) error {
		switch redisMode(ctx, client) {
		case "standalone":
			return wrongKind{fmt.Errorf("%s has cluster support disabled: it is a single server; use redis://%[1]s", client.Options().Addr)}
		case "sentinel":
			return wrongKind{fmt.Errorf("%s is a sentinel; use redis+sentinel://%[1]s/%s", client.Options().Addr, append(masters(ctx, client), "mymaster")[0])}
		}
		return nil
	}))
}

// maxRedirects limits how often a command follows a moving slot. MOVED, ASK and READONLY mean that the server has
// not executed the command, so a second try is safe (Redis cluster specification, "Redirection and resharding").
const maxRedirects = 5

// onceOnCluster keeps the client from repeating a command after a broken connection or a missing
// answer. The library would repeat it up to maxRedirects times, also on other nodes, whatever
// MaxRetries says. A lock's script must not run twice.
//
// After a failure, the client only asks again which node serves which slot, since a node may be gone.
type onceOnCluster struct{ client *redis.ClusterClient }

// DialHook implements redis.Hook.
func (onceOnCluster) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (h onceOnCluster) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		for tries := 1; ; tries++ {
			err := next(ctx, once{cmd})
			if tries < triesAgain && redis.IsTryAgainError(err) {
				time.Sleep(tryAgainAfter)
				continue
			}
			h.reloadSlots(ctx, err)
			return err
		}
	}
}

// While only some keys of a slot have moved, a server answers TRYAGAIN to a command with several keys. The
// command was not executed, and the move ends soon, so the client tries again.
const (
	triesAgain    = 20
	tryAgainAfter = 10 * time.Millisecond
)

// ProcessPipelineHook implements redis.Hook.
func (h onceOnCluster) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		single := make([]redis.Cmder, len(cmds))
		for i, cmd := range cmds {
			single[i] = once{cmd}
		}
		err := next(ctx, single)
		h.reloadSlots(ctx, err)
		return err
	}
}

// reloadSlots makes the client reload the slots in the background if the server did not answer or the cluster
// is down.
func (h onceOnCluster) reloadSlots(ctx context.Context, err error) {
	var reply redis.Error
	if err == nil || errors.As(err, &reply) && !redis.IsClusterDownError(err) {
		return
	}
	h.client.ReloadState(ctx)
}

// once is a command that the library does not repeat.
type once struct{ redis.Cmder }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }
