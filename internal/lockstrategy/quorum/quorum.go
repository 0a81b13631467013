// Package quorum is N independent Redis nodes of which a majority decides.
//
// A node that did not answer in time is left out for a while, so that one silent node
// does not cost every buyer a time-out. Left out counts as down, and a majority of
// all nodes is needed as ever. Nobody is left out when more than a minority is
// silent, since nobody could buy then.
package quorum

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
)

// Majority is nil when at most a minority of the nodes failed to do what was asked
// of them. errs has an answer of each node, nil or not.
func Majority(nodes int, errs []error) error {
	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
		}
	}
	if failed <= (nodes-1)/2 {
		return nil
	}
	return deps.Failed(deps.Redlock, fmt.Errorf("%d of %d nodes: %w", failed, nodes, errors.Join(errs...)))
}

// errLeftOut is of a node that has not answered lately and is not asked again yet.
var errLeftOut = errors.New("did not answer lately and is left out")

// A node is one node's pool of connections. redsync waits until every
// node has answered, so one node that is silent (a stopped process, a dead
// link) would cost each buyer the whole time-out, twice. Here it costs one
// buyer in a while: a node whose command ran out of time is left out for a
// pause, and then one buyer tries it again.
type node struct {
	redsyncredis.Pool
	all   []*node // with this one
	pause time.Duration
	now   func() time.Time

	silentUntil atomic.Pointer[time.Time] // nil when it answers
}

// Nodes are the pools that redsync takes, one a client. A silent node is left out for
// a pause, by the clock now.
func Nodes(clients []redis.UniversalClient, pause time.Duration, now func() time.Time) []redsyncredis.Pool {
	nodes := make([]*node, len(clients))
	pools := make([]redsyncredis.Pool, len(clients))
	for i, client := range clients {
		nodes[i] = &node{Pool: goredis.NewPool(client), all: nodes, pause: pause, now: now}
		pools[i] = nodes[i]
	}
	return pools
}

// Get is redsyncredis.Pool.Get.
func (n *node) Get(ctx context.Context) (redsyncredis.Conn, error) {
	if until := n.silentUntil.Load(); until != nil && n.minority() {
		next := n.now().Add(n.pause)
		if n.now().Before(*until) || !n.silentUntil.CompareAndSwap(until, &next) {
			return nil, errLeftOut
		}
	}
	c, err := n.Pool.Get(ctx)
	if err != nil {
		return nil, err
	}
	return conn{c, n}, nil
}

// minority reports that a majority of the nodes answers.
func (n *node) minority() bool {
	silent := 0
	for _, node := range n.all {
		if node.silentUntil.Load() != nil {
			silent++
		}
	}
	return silent <= (len(n.all)-1)/2
}

// answered notes how a command ended.
func (n *node) answered(err error) {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		until := n.now().Add(n.pause)
		n.silentUntil.Store(&until)
	case err == nil:
		n.silentUntil.Store(nil)
	}
}

// conn notes how the two commands of a lock end.
type conn struct {
	redsyncredis.Conn
	node *node
}

func (c conn) SetNX(name, value string, expiry time.Duration) (bool, error) {
	ok, err := c.Conn.SetNX(name, value, expiry)
	c.node.answered(err)
	return ok, err
}

func (c conn) Eval(script *redsyncredis.Script, keysAndArgs ...any) (any, error) {
	reply, err := c.Conn.Eval(script, keysAndArgs...)
	c.node.answered(err)
	return reply, err
}
