// Package quorum takes and frees locks on N independent Redis nodes. The answer of the majority counts.
//
// A node that did not answer in time is skipped for a while, so that one silent node does not cost
// every buyer a timeout. A skipped node counts as down, and a majority of all nodes is still
// needed. If more than a minority is silent, no node is skipped, since no buyer could buy then.
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

// Majority returns nil if at most a minority of the nodes failed. The slice errs has one result per
// node, nil or an error.
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

var errLeftOut = errors.New("did not answer lately and is left out")

// A node is the pool of connections to one Redis node. The library redsync waits until every node has
// answered. So a silent node (a stopped process, a dead link) would cost each buyer the whole timeout,
// twice. Here buyers skip a node that timed out for a while, and then one buyer tries it again.
type node struct {
	redsyncredis.Pool
	all   []*node // all nodes, including this one
	pause time.Duration
	now   func() time.Time

	silentUntil atomic.Pointer[time.Time] // nil while the node answers
}

// Nodes returns the pools for redsync, one per client. A silent node is skipped for the duration `pause`.
// The function `now` is the clock.
func Nodes(clients []redis.UniversalClient, pause time.Duration, now func() time.Time) []redsyncredis.Pool {
	nodes := make([]*node, len(clients))
	pools := make([]redsyncredis.Pool, len(clients))
	for i, client := range clients {
		nodes[i] = &node{Pool: goredis.NewPool(client), all: nodes, pause: pause, now: now}
		pools[i] = nodes[i]
	}
	return pools
}

func (n *node) Get(ctx context.Context) (redsyncredis.Conn, error) {
	if until := n.silentUntil.Load(); until != nil && n.majorityAnswers() {
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

// majorityAnswers reports whether at most a minority of the nodes is silent.
func (n *node) majorityAnswers() bool {
	silent := 0
	for _, node := range n.all {
		if node.silentUntil.Load() != nil {
			silent++
		}
	}
	return silent <= (len(n.all)-1)/2
}

func (n *node) answered(err error) {
	switch {
	case deps.TimedOut(err):
		until := n.now().Add(n.pause)
		n.silentUntil.Store(&until)
	case err == nil:
		n.silentUntil.Store(nil)
	}
}

// conn is a connection that records whether the two commands of a lock, SetNX and Eval, were answered.
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
