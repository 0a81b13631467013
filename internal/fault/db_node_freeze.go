package fault

import (
	"context"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// dbNodeFreeze stops the node of shop A for longer than the other nodes wait for it, then lets it
// run on. While stopped, the node accepts connections and answers none.
func dbNodeFreeze() Fault {
	return Fault{
		Name: "db-node-freeze", About: "a Galera node is stopped (SIGSTOP) until the others continue without it, then resumes", On: dialect.Galera, Stock: 160,
		Inject: nodeLoss{
			lose:    func(_ context.Context, n *localserver.GaleraNode) error { return n.Freeze() },
			mend:    func(_ context.Context, n *localserver.GaleraNode) error { return n.Thaw() },
			lost:    "SIGSTOP of a node",
			mended:  "SIGCONT of the node",
			unaided: true,
		}.inject,
	}
}
