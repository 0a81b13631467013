package fault

import (
	"context"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// dbNodeFreeze stops (SIGSTOP) the database node of shop A until the other nodes have removed it, then lets it
// continue. While stopped, the node accepts connections and answers none.
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
