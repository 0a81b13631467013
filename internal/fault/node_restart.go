package fault

import (
	"context"
	"time"
)

// nodeRestart kills a Redlock node and restarts it empty. The holder got its lock from a bare majority that
// includes this node. The emptied node and the other nodes, which never had the lock, can give another buyer a
// majority.
func nodeRestart() Fault {
	return Fault{
		Name: "node-restart", About: "a bare majority of the Redlock nodes has granted the lock, and one of them restarts empty",
		Needs: redlockNodes(), Stock: stock,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			how, err := holdBarely(ctx, t)
			if err != nil {
				return "", err
			}
			proof, err := forgetInCell(ctx, t, t.Servers.nodes[0], "one of its nodes", time.Now())
			return how + "; " + proof, err
		},
	}
}
