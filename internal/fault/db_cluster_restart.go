package fault

import (
	"context"
	"fmt"

	"github.com/oversell/oversell/internal/engine/dialect"
)

// dbClusterRestart kills all nodes at once under load and bootstraps the cluster from the most advanced
// node. The nodes use innodb_flush_log_at_trx_commit=1, which flushes the log at each COMMIT, so no
// acknowledged sale may be lost. A SIGKILL does not stand for a power failure, since the kernel keeps written data.
func dbClusterRestart() Fault {
	return Fault{
		Name: "db-cluster-restart", About: "all nodes of the database cluster are killed under load; it restarts from the node with the latest commits", On: dialect.Galera, Stock: 160,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			c, ok := t.Servers.clustered()
			if !ok {
				return "", errNoCluster
			}
			kill := outage{
				server: "cluster", lost: "SIGKILL of all nodes", restore: c.Bootstrap, restored: "the cluster is bootstrapped anew",
				lose: func() error {
					for _, n := range c.Nodes() {
						if err := n.Kill(); err != nil {
							return err
						}
					}
					return nil
				},
				meanwhile: func(l *load) { l.awaitRefused(ctx); l.cancel() },
			}
			for _, n := range c.Nodes() {
				kill.addresses = append(kill.addresses, n.Address())
			}
			proof, err := kill.underLoad(ctx, t)
			if err != nil {
				return "", err
			}
			if err := awaitWhole(ctx, c); err != nil {
				return "", err
			}
			return proof + fmt.Sprintf("; bootstrapped, all nodes are synced at %v", seqnos(ctx, c)), nil
		},
	}
}
