package fault

import (
	"context"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// dbNodeKill kills the node of shop A under load, lets the others go on without it, and restarts it. Then it kills
// the node again while a buyer is inside its COMMIT there. Afterwards every node must have every acknowledged sale.
func dbNodeKill() Fault {
	return Fault{
		Name: "db-node-kill", About: "a Galera node is killed under load and returns later", On: dialect.Galera, Stock: 160,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			proof, err := nodeLoss{
				lose:   func(_ context.Context, n *localserver.GaleraNode) error { return n.Kill() },
				mend:   func(_ context.Context, n *localserver.GaleraNode) error { return n.Start() },
				lost:   "SIGKILL of a node",
				mended: "the node is back",
			}.inject(ctx, t)
			if err != nil {
				return "", err
			}
			c, _ := t.Servers.clustered()
			node := c.Nodes()[0]
			if err := insideCommit(ctx, t, node.Kill); err != nil {
				return "", err
			}
			t.injected("SIGKILL of the node inside a COMMIT")
			if err := awaitWithout(ctx, c, node); err != nil {
				return "", err
			}
			return proof + "; it was killed again while the holder was inside its COMMIT", node.Start()
		},
	}
}
