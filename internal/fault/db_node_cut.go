package fault

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/dialect"
	"github.com/oversell/oversell/internal/localserver"
)

// dbNodeCut cuts the node of shop A off from the other nodes, and not from the shop: it is
// a minority, and must sell nothing. Galera's own switch cuts it off (gmcast.isolate): its
// connections to the others are closed, and none are made. The nodes tell each other where
// they listen, so a proxy in between would be gone around.
func dbNodeCut() Fault {
	return Fault{
		Name: "db-node-cut", About: "a node of the cluster is cut off from the others: a minority, which sells nothing", On: dialect.Galera, Stock: 160,
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
			before, cut := l.sold.Load(), time.Now()
			t.afterwards(func(ctx context.Context) error { return node.Isolate(ctx, false) })
			if err := node.Isolate(ctx, true); err != nil {
				return "", err
			}
			t.struck("a node is cut off from the others")
			if err := awaitWithout(ctx, c, node); err != nil {
				return "", err
			}
			if err := await(ctx, node, "alone", func(s localserver.GaleraStatus) bool { return !s.Ready && s.Cluster != "Primary" }); err != nil {
				return "", err
			}
			refused := node.Refuses(ctx)
			meanwhile := goesOn(ctx, l)
			if err := node.Isolate(ctx, false); err != nil {
				return "", err
			}
			t.struck("the node is let in again")
			l.stop()
			if err := awaitWhole(ctx, c); err != nil {
				return "", err
			}
			proof, err := mostly(before, meanwhile, underWay(t.buyers.answers(), cut))
			if err == nil && !refused {
				return "", missed("the node that was cut off took a write")
			}
			return proof + "; the node itself was no part of a majority and refused a write (error 1047)", err
		},
	}
}
