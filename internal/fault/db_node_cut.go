package fault

import (
	"context"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// dbNodeCut cuts the Galera node of shop A off from the other nodes, but not from the shop. The node is then
// in a minority and must sell nothing. Galera's own option gmcast.isolate makes the node close its connections
// to the other nodes and open no new ones. A proxy between the nodes cannot do this, since nodes tell each
// other their real addresses.
func dbNodeCut() Fault {
	return Fault{
		Name: "db-node-cut", About: "a Galera node is cut off from the others; this minority must sell nothing", On: dialect.Galera, Stock: 160,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			proof, err := nodeLoss{
				lose:      func(ctx context.Context, n *localserver.GaleraNode) error { return n.Isolate(ctx, true) },
				mend:      func(ctx context.Context, n *localserver.GaleraNode) error { return n.Isolate(ctx, false) },
				lost:      "a node is cut off from the others",
				mended:    "the node is let in again",
				unaided:   true,
				meanwhile: refusesAlone,
			}.inject(ctx, t)
			return proof + "; the node itself was no part of a majority and refused a write (error 1047)", err
		},
	}
}

// refusesAlone returns an error unless the node has noticed that it is in a minority and refuses writes.
func refusesAlone(ctx context.Context, n *localserver.GaleraNode) error {
	if err := await(ctx, n, "alone", func(s localserver.GaleraStatus) bool { return !s.Ready && s.Cluster != "Primary" }); err != nil {
		return err
	}
	if !n.Refuses(ctx) {
		return missed("the node that was cut off took a write")
	}
	return nil
}
