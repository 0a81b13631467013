package lockstrategytest

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
)

// errDead is the error in a process that has died: its commands never arrive at Redis.
var errDead = errors.New("the process is dead")

// A process has its own connections to Redis. It can die at a command, or between two commands.
type process struct {
	dead   atomic.Bool
	before func(ctx context.Context, command string) // may be nil; called before each command
}

// deps returns the engine's connections, with separate Redis clients on which p intercepts each command.
func (w *world) deps(tb testing.TB, p *process) lockstrategy.Deps {
	d := onengine.Deps(w.engine)
	d.Settings.Wait, d.Settings.LeaseTTL = stepTimeout, longLease
	gated := func(c redis.UniversalClient) redis.UniversalClient {
		own := another(c)
		own.AddHook(p)
		tb.Cleanup(func() { _ = own.Close() })
		return own
	}
	d.Redis = gated(d.Redis)
	d.Redlock = slices.Clone(d.Redlock)
	for i, node := range d.Redlock {
		d.Redlock[i] = gated(node)
	}
	return d
}

// another returns a client of the same servers with its own connections.
func another(c redis.UniversalClient) redis.UniversalClient {
	if cluster, ok := c.(*redis.ClusterClient); ok {
		options := *cluster.Options()
		return redis.NewClusterClient(&options)
	}
	options := *c.(*redis.Client).Options()
	return redis.NewClient(&options)
}

func (p *process) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (p *process) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if p.before != nil && !p.dead.Load() {
			p.before(ctx, cmd.Name())
		}
		if p.dead.Load() {
			cmd.SetErr(errDead)
			return errDead
		}
		return next(ctx, cmd)
	}
}

func (p *process) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if p.dead.Load() {
			return errDead
		}
		return next(ctx, cmds)
	}
}
