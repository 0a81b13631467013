package fault

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/dialect"
)

// dbNodeFreeze stops the node of shop A for longer than the others wait for it, and lets it
// run on: it accepts connections meanwhile and answers none.
func dbNodeFreeze() Fault {
	return Fault{
		Name: "db-node-freeze", About: "SIGSTOP of a node of the cluster until the others go on without it, then SIGCONT", On: dialect.Galera, Stock: 160,
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
			before, frozen := l.sold.Load(), time.Now()
			t.afterwards(func(context.Context) error { return node.Signal(sigCont) })
			if err := node.Signal(sigStop); err != nil {
				return "", err
			}
			t.struck("SIGSTOP of a node")
			if err := awaitWithout(ctx, c, node); err != nil {
				return "", err
			}
			meanwhile := goesOn(ctx, l)
			if err := node.Signal(sigCont); err != nil {
				return "", err
			}
			t.struck("SIGCONT of the node")
			l.stop()
			if err := awaitWhole(ctx, c); err != nil {
				return "", err
			}
			proof, err := mostly(before, meanwhile, underWay(t.buyers.answers(), frozen))
			return proof, err
		},
	}
}
