package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
)

// minority is how many of the nodes may fail.
func minority(nodes []*redisNode) int { return (len(nodes) - 1) / 2 }

// holdBarely is Testbed.hold for a lock on several nodes. While the holder acquires
// the lock, a minority of the nodes is cut off from its shop, so that it gets a bare
// majority. A lock that needs all nodes cannot be acquired like that; it then gets
// all of them, and how says so.
func holdBarely(ctx context.Context, t *Testbed) (how string, err error) {
	nodes := t.A.nodes()
	spare := nodes[len(nodes)-minority(t.Servers.nodes):]
	spare.Cut()
	err = t.hold(ctx, failpoint.Commit, t.Times.Wait/4)
	if err := spare.Mend(); err != nil {
		return "", err
	}
	if errors.Is(err, errNoHolder) {
		// It is still trying, and can get all of them now.
		err = holding(ctx, t, t.Times.Wait)
	}
	if err != nil {
		return "", err
	}
	return heldOn(ctx, t.Servers.nodes, t.Product)
}

// heldOn counts the nodes that have the holder's lock. Neither of the two locks that
// these faults are for has more than a bare majority and fewer than all.
func heldOn(ctx context.Context, nodes []*redisNode, product string) (how string, _ error) {
	var n int
	for _, node := range nodes {
		keys, err := node.keysOf(ctx, product)
		if err != nil {
			return "", err
		}
		if len(keys) > 0 {
			n++
		}
	}
	switch all := len(nodes); n {
	case all - minority(nodes):
		return fmt.Sprintf("the lock is on %d of %d nodes, a bare majority", n, all), nil
	case all:
		return fmt.Sprintf("the lock is on all %d nodes, as it needs them", n), nil
	default:
		return "", missed("the lock is on %d of %d nodes", n, all)
	}
}

// settle waits until a client that had left silent nodes out asks them again.
func settle(ctx context.Context, lease time.Duration) {
	select {
	case <-time.After(lease):
	case <-ctx.Done():
	}
}
