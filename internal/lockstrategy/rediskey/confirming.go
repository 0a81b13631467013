package rediskey

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
)

// Confirming is a client whose scripts, under a context of Asking, wait until so many
// replicas have what they wrote (Redis documentation, WAIT). It is safe for concurrent use.
type Confirming struct {
	redis.UniversalClient
	Replicas int
	Within   time.Duration
}

type askingKey struct{}

// Asking returns a context for one call that asks for a lock. confirmed reports after the
// call whether the replicas had it in time.
func Asking(ctx context.Context) (_ context.Context, confirmed func() bool) {
	var yes bool
	return context.WithValue(ctx, askingKey{}, &yes), func() bool { return yes }
}

// EvalSha is redis.Scripter.EvalSha.
func (c Confirming) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, keys, func(s redis.Scripter) *redis.Cmd { return s.EvalSha(ctx, sha, keys, args...) })
}

// Eval is redis.Scripter.Eval.
func (c Confirming) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return c.run(ctx, keys, func(s redis.Scripter) *redis.Cmd { return s.Eval(ctx, script, keys, args...) })
}

func (c Confirming) run(ctx context.Context, keys []string, send func(redis.Scripter) *redis.Cmd) (cmd *redis.Cmd) {
	confirmed, asking := ctx.Value(askingKey{}).(*bool)
	if !asking {
		return send(c.UniversalClient)
	}
	err := topology.OnConn(ctx, c.UniversalClient, keys[0], func(conn *redis.Conn) error {
		if cmd = send(conn); cmd.Err() != nil {
			return cmd.Err()
		}
		n, err := topology.Wait(ctx, conn, c.Replicas, c.Within)
		*confirmed = err == nil && n >= int64(c.Replicas)
		return nil // the grant stands, confirmed or not
	})
	if cmd == nil { // no connection
		cmd = redis.NewCmd(ctx)
		cmd.SetErr(err)
	}
	return cmd
}
