// Package topology names the topologies of Redis. The engine detects the topology. The catalogue of strategies
// uses the names, and some faults apply to only one topology.
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

// EachPrimary calls fn with each server that accepts writes, one after the other: the cluster nodes
// with slots, or the single server.
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

// Limits for retries while a slot moves to another server. It arrives there within this number of tries.
const (
	tries      = 20
	tryAgainIn = 10 * time.Millisecond
)

// OnConn calls fn with one connection to the server of the key, and returns the error of fn. The command WAIT
// needs this, since it counts the replicas that have the writes of its own connection. If the server refuses
// fn's script because the slot has moved, the script had no effect, and OnConn calls fn again. While the slot
// moves, fn gets a connection to the server that the answer ASK names, if the client knows that server.
func OnConn(ctx context.Context, c redis.UniversalClient, key string, fn func(*redis.Conn) error) error {
	cluster, several := c.(*redis.ClusterClient)
	if !several {
		node, one := c.(*redis.Client)
		if !one {
			return errors.New("this client has no connections to single out")
		}
		return onNode(node, fn)
	}
	for n := 1; ; n++ {
		node, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			return err
		}
		err = onNode(node, fn)
		if address, ask := redis.IsAskError(err); ask {
			err = onAsked(ctx, cluster, address, err, fn)
		}
		if err != nil {
			cluster.ReloadState(ctx)
		}
		if n == tries || !elsewhere(err) {
			return err
		}
		time.Sleep(tryAgainIn)
	}
}

// onNode calls fn with a connection to the node. hooks wrap the commands of fn.
func onNode(node *redis.Client, fn func(*redis.Conn) error, hooks ...redis.Hook) error {
	conn := node.Conn()
	defer conn.Close() // returns the connection to the pool
	for _, hook := range hooks {
		conn.AddHook(hook)
	}
	return fn(conn)
}

// onAsked calls fn with a connection to the primary at the address. If the client does not know that primary
// yet, onAsked returns the error `unknown`.
func onAsked(ctx context.Context, cluster *redis.ClusterClient, address string, unknown error, fn func(*redis.Conn) error) error {
	var asked *redis.Client
	err := EachPrimary(ctx, cluster, func(c redis.UniversalClient) error {
		if node, ok := c.(*redis.Client); ok && node.Options().Addr == address {
			asked = node
		}
		return nil
	})
	if err != nil || asked == nil {
		return errors.Join(unknown, err)
	}
	return onNode(asked, fn, askingFirst{})
}

// askingFirst sends ASKING before each script. Without it a server refuses a slot that is still moving
// to it (Redis cluster specification, "ASK redirection"). ASKING applies to one command.
type askingFirst struct{}

// DialHook implements redis.Hook.
func (askingFirst) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (askingFirst) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Name(); name == "eval" || name == "evalsha" { // not before the commands that open a connection
			if err := next(ctx, redis.NewStatusCmd(ctx, "asking")); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (askingFirst) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Wait sends WAIT and returns the number of replicas that have the writes of the connection. The server
// answers when enough replicas have them, or after the time `within` (at least 1 ms). The client's ReadTimeout
// limits the wait for that answer, and must be longer than `within`. redis.Conn.Wait would add 10 s to
// `within`, so a silent server would delay a buyer for that long.
func Wait(ctx context.Context, conn *redis.Conn, replicas int, within time.Duration) (int64, error) {
	return conn.Do(ctx, "WAIT", replicas, max(within.Milliseconds(), 1)).Int64() // 0 would wait forever
}

func elsewhere(err error) bool {
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask || redis.IsTryAgainError(err)
}
