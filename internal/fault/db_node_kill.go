package fault

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/dialect"
)

// dbNodeKill kills the node of shop A under load, until the others have gone on without it
// and it is back; and once more while a buyer is inside its COMMIT there. Every sale that
// was acknowledged must be at every node afterwards.
func dbNodeKill() Fault {
	return Fault{
		Name: "db-node-kill", About: "SIGKILL of a node of the cluster under load; the others go on, and it comes back", On: dialect.Galera, Stock: 160,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			c, ok := t.Servers.clustered()
			if !ok {
				return "", errNoCluster
			}
			t.afterwards(func(ctx context.Context) error { return awaitWhole(ctx, c) })
			node := c.Nodes()[0]
			l := startLoad(ctx, t)
			defer l.stop()
			l.awaitSold(ctx, enough)
			before, killed := l.sold.Load(), time.Now()
			if err := node.Kill(); err != nil {
				return "", err
			}
			t.struck("SIGKILL of a node")
			if err := awaitWithout(ctx, c, node); err != nil {
				return "", err
			}
			meanwhile := goesOn(ctx, l)
			l.stop()
			if err := node.Start(); err != nil {
				return "", err
			}
			t.struck("the node is back")
			if err := awaitWhole(ctx, c); err != nil {
				return "", err
			}
			proof, err := mostly(before, meanwhile, underWay(t.buyers.answers(), killed))
			if err != nil {
				return "", err
			}
			if err := insideCommit(ctx, t, node.Kill); err != nil {
				return "", err
			}
			t.struck("SIGKILL of the node inside a COMMIT")
			if err := awaitWithout(ctx, c, node); err != nil {
				return "", err
			}
			return proof + "; it was killed again while the holder was inside its COMMIT", node.Start()
		},
	}
}
