package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
)

// dbClusterRestart kills all nodes at once under load, and starts the cluster anew from the
// one that has seen most. With a log that is flushed at each COMMIT
// (innodb_flush_log_at_trx_commit=1) every acknowledged sale must be there; a SIGKILL is no
// power failure, see dbKill.
func dbClusterRestart() Fault {
	return Fault{
		Name: "db-cluster-restart", About: "SIGKILL of all nodes of the cluster under load, then bootstrapped from the one that has seen most", On: dialect.Galera, Stock: 160,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			c, ok := t.Servers.clustered()
			if !ok {
				return "", errNoCluster
			}
			l := startLoad(ctx, t)
			defer l.stop()
			l.awaitSold(ctx, enough)
			before, killed := l.sold.Load(), time.Now()
			l.refused.Store(0)
			gone := true
			for _, n := range c.Nodes() {
				if err := n.Kill(); err != nil {
					return "", err
				}
			}
			t.struck("SIGKILL of all nodes")
			l.awaitRefused(ctx)
			for _, n := range c.Nodes() {
				gone = gone && nobodyAt(n.Address())
			}
			l.cancel()
			if err := c.Bootstrap(); err != nil {
				return "", err
			}
			t.struck("the cluster is bootstrapped anew")
			l.stop()
			if err := awaitWhole(ctx, c); err != nil {
				return "", err
			}
			proof, err := underLoad("cluster", before, gone, underWay(t.buyers.answers(), killed), l.refused.Load())
			return proof + fmt.Sprintf("; bootstrapped, all nodes are synced at %v", seqnos(ctx, c)), err
		},
	}
}
