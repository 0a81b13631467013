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
// sent. fn is called again when the server refuses its script since the key's slot is
// elsewhere: then it has done nothing. While the slot is on its way (ASK), fn gets a
// connection to the server that is named, if the client knows it.
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

// onNode calls fn with a connection to the node. hooks go around what fn sends.
func onNode(node *redis.Client, fn func(*redis.Conn) error, hooks ...redis.Hook) error {
	conn := node.Conn()
	defer conn.Close() // back to the pool
	for _, hook := range hooks {
		conn.AddHook(hook)
	}
	return fn(conn)
}

// onAsked calls fn with a connection to the primary at the address. When the client does
// not know it yet, the error is unknown.
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

// askingFirst sends ASKING before each script: without it a server refuses a slot that is
// on its way to it (Redis cluster specification, "ASK redirection"). It holds for one command.
type askingFirst struct{}

// DialHook is redis.Hook.
func (askingFirst) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is redis.Hook.
func (askingFirst) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Name(); name == "eval" || name == "evalsha" { // not what greets the server
			if err := next(ctx, redis.NewStatusCmd(ctx, "asking")); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook is redis.Hook.
func (askingFirst) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Wait sends WAIT: how many replicas have what was written on the connection, when so many
// have it or that long has passed, 1 ms or longer. The client's ReadTimeout bounds the
// answer, and must be longer. That of redis.Conn.Wait is 10 s more than within, whatever the
// client's, and a silent server would keep a buyer for so long.
func Wait(ctx context.Context, conn *redis.Conn, replicas int, within time.Duration) (int64, error) {
	return conn.Do(ctx, "WAIT", replicas, max(within.Milliseconds(), 1)).Int64() // 0 would be for ever
}

func elsewhere(err error) bool {
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask || redis.IsTryAgainError(err)
}
