package lockstrategy

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// errLeftOut: the node has not answered lately, and is not asked again yet.
var errLeftOut = errors.New("did not answer lately and is left out")

// A redlockNode is one node's pool of connections. redsync waits until every
// node has answered, so one node that is silent (a stopped process, a dead
// link) would cost each buyer the whole time-out, twice. Here it costs one
// buyer in a while: a node whose command ran out of time is left out for a
// pause, and then one buyer tries it again.
//
// Left out counts as down, and a majority is asked for as ever: it is safe. It
// is not done when more than a minority is silent, since nobody could buy then.
type redlockNode struct {
	redsyncredis.Pool
	all   []*redlockNode // with this one
	pause time.Duration
	now   func() time.Time

	silentUntil atomic.Int64 // Unix time in nanoseconds; 0 when it answers
}

func newNodes(clients []redis.UniversalClient, pause time.Duration, now func() time.Time) []redsyncredis.Pool {
	nodes := make([]*redlockNode, len(clients))
	pools := make([]redsyncredis.Pool, len(clients))
	for i, client := range clients {
		nodes[i] = &redlockNode{Pool: goredis.NewPool(client), all: nodes, pause: pause, now: now}
		pools[i] = nodes[i]
	}
	return pools
}

// Get is redsyncredis.Pool.Get.
func (n *redlockNode) Get(ctx context.Context) (redsyncredis.Conn, error) {
	if until := n.silentUntil.Load(); until != 0 && n.minority() {
		next := n.now().Add(n.pause).UnixNano()
		if n.now().UnixNano() < until || !n.silentUntil.CompareAndSwap(until, next) {
			return nil, errLeftOut
		}
	}
	conn, err := n.Pool.Get(ctx)
	if err != nil {
		return nil, err
	}
	return redlockConn{conn, n}, nil
}

// minority tells whether the nodes that are silent are not missed.
func (n *redlockNode) minority() bool {
	silent := 0
	for _, node := range n.all {
		if node.silentUntil.Load() != 0 {
			silent++
		}
	}
	return silent <= (len(n.all)-1)/2
}

// answered notes how a command ended.
func (n *redlockNode) answered(err error) {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		n.silentUntil.Store(n.now().Add(n.pause).UnixNano())
	case err == nil:
		n.silentUntil.Store(0)
	}
}

// redlockConn notes how the two commands of a lock end.
type redlockConn struct {
	redsyncredis.Conn
	node *redlockNode
}

func (c redlockConn) SetNX(name, value string, expiry time.Duration) (bool, error) {
	ok, err := c.Conn.SetNX(name, value, expiry)
	c.node.answered(err)
	return ok, err
}

func (c redlockConn) Eval(script *redsyncredis.Script, keysAndArgs ...any) (any, error) {
	reply, err := c.Conn.Eval(script, keysAndArgs...)
	c.node.answered(err)
	return reply, err
}
