package fault

import (
	"context"
	"time"
)

// nodeRestart kills one node of the bare majority that granted the holder's lock, and restarts it empty.
// The emptied node and the minority, which never had the lock, can give another buyer a majority.
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
