package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
)

// openCluster opens a Redis Cluster by some of its nodes; the others it learns from them.
func openCluster(ctx context.Context, e *Engine) error {
	l, err := parseHostList(e.URLs.Redis, "6379")
	if err != nil {
		return fmt.Errorf("%w; give %s", err, redisExamples())
	}
	if l.path != "" {
		return fmt.Errorf("the path %q: a Redis Cluster has one database and no name; give %s", l.path, redisKinds()[2].example)
	}
	o := e.URLs.redisOptions(e.URLs.Wait / 2)
	o.Addrs, o.Username, o.Password = l.hosts, l.user, l.password
	if err := askNodes(ctx, e, l, o); err != nil {
		return err
	}
	all := o.Cluster()
	all.MaxRedirects, all.MinRetryBackoff, all.MaxRetryBackoff = maxRedirects, 5*time.Millisecond, 50*time.Millisecond
	all.DisableRoutingPolicies = true // by key, and nothing else
	client := redis.NewClusterClient(all)
	client.AddHook(onceOnCluster{client})
	e.Redis, e.Topology = client, topology.Cluster
	e.onClose(client.Close)
	e.pingRedis = func(ctx context.Context) error {
		return client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			info, err := node.ClusterInfo(ctx).Result()
			if err == nil && !strings.Contains(info, "cluster_state:ok") {
				err = errors.New("CLUSTERDOWN: not every slot is served")
			}
			return err
		})
	}
	return nil
}

// askNodes refuses hosts that are not of a cluster.
func askNodes(ctx context.Context, e *Engine, l hostList, o *redis.UniversalOptions) error {
	var (
		mu      sync.Mutex
		refused error
	)
	errs := l.ask(ctx, o, func(ctx context.Context, client *redis.Client) error {
		if err := client.Ping(ctx).Err(); err != nil {
			return err
		}
		mode := redisMode(ctx, client)
		mu.Lock()
		defer mu.Unlock()
		switch mode {
		case "standalone":
			refused = fmt.Errorf("%s has cluster support disabled: it is a single server; give redis://%[1]s", client.Options().Addr)
		case "sentinel":
			refused = fmt.Errorf("%s is a sentinel; give redis+sentinel://%[1]s/%s", client.Options().Addr, oneOr(masters(ctx, client), "mymaster"))
		}
		return nil
	})
	if refused != nil {
		return refused
	}
	return l.dead(e, errs)
}

// maxRedirects is how often a command follows a slot that moves. MOVED, ASK and READONLY
// come before a command has done anything, so following them sends nothing twice
// (Redis cluster specification, "Redirection and resharding").
const maxRedirects = 5

// onceOnCluster keeps the client from sending a command again when its connection broke or
// its answer did not come: the library would, up to maxRedirects times, and then to another
// node, whatever MaxRetries says. A lock's script must not run twice unseen.
//
// In return the client looks anew for who serves which slot, since the node may be gone.
type onceOnCluster struct{ client *redis.ClusterClient }

// DialHook is redis.Hook.
func (onceOnCluster) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is redis.Hook.
func (h onceOnCluster) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		for tries := 1; ; tries++ {
			err := next(ctx, once{cmd})
			if tries < triesAgain && redis.IsTryAgainError(err) {
				time.Sleep(tryAgainAfter)
				continue
			}
			h.look(ctx, err)
			return err
		}
	}
}

// A command with several keys is refused with TRYAGAIN while only some of them have moved
// with their slot. It has done nothing, and the move takes a moment.
const (
	triesAgain    = 20
	tryAgainAfter = 10 * time.Millisecond
)

// ProcessPipelineHook is redis.Hook.
func (h onceOnCluster) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		single := make([]redis.Cmder, len(cmds))
		for i, cmd := range cmds {
			single[i] = once{cmd}
		}
		err := next(ctx, single)
		h.look(ctx, err)
		return err
	}
}

// look has the client learn the slots anew in the background, unless the server has
// answered.
func (h onceOnCluster) look(ctx context.Context, err error) {
	var said redis.Error
	if err == nil || errors.As(err, &said) && !redis.IsClusterDownError(err) {
		return
	}
	h.client.ReloadState(ctx)
}

// once is a command that the library does not send again.
type once struct{ redis.Cmder }

// NoRetry is redis.Cmder.NoRetry.
func (once) NoRetry() bool { return true }
