package fault

import (
	"context"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// dbNodeCut cuts the node of shop A off from the other nodes, and not from the shop: it is
// a minority, and must sell nothing. Galera's own switch cuts it off (gmcast.isolate): its
// connections to the others are closed, and none are made. The nodes tell each other where
// they listen, so a proxy in between would be gone around.
func dbNodeCut() Fault {
	return Fault{
		Name: "db-node-cut", About: "a node of the cluster is cut off from the others: a minority, which sells nothing", On: dialect.Galera, Stock: 160,
		CellOnly: "it needs a node of a Galera cluster, which a cell starts",
		Inject: inCell(func(ctx context.Context, t *Testbed) (string, error) {
			proof, err := nodeLoss{
				lose:      func(ctx context.Context, n *localserver.GaleraNode) error { return n.Isolate(ctx, true) },
				mend:      func(ctx context.Context, n *localserver.GaleraNode) error { return n.Isolate(ctx, false) },
				lost:      "a node is cut off from the others",
				mended:    "the node is let in again",
				unaided:   true,
				meanwhile: refusesAlone,
			}.inject(ctx, t)
			return proof + "; the node itself was no part of a majority and refused a write (error 1047)", err
		}),
	}
}

// refusesAlone: the node has seen that it is alone, and takes no write.
func refusesAlone(ctx context.Context, n *localserver.GaleraNode) error {
	if err := await(ctx, n, "alone", func(s localserver.GaleraStatus) bool { return !s.Ready && s.Cluster != "Primary" }); err != nil {
		return err
	}
	if !n.Refuses(ctx) {
		return missed("the node that was cut off took a write")
	}
	return nil
}
