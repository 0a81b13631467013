package fault

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// nodeRestart kills one node of the holder's bare majority and restarts it empty. Together with the
// nodes that were cut off, it gives another buyer a majority.
func nodeRestart() Fault {
	return Fault{
		Name: "node-restart", About: "a Redlock node, one of a bare majority that granted the lock, restarts empty",
		Needs: redlockNodes(), Stock: stock,
		AboutRush: "one Redlock node that has the lock, of a bare majority where that will do, comes back empty while a buyer is about to write", TwoProcesses: true,
		Lacks: func(e *engine.Engine) string {
			if len(startedServers(e, lockstrategy.NeedsRedlock)) == 0 {
				return "the Redlock nodes are not the engine's own"
			}
			return ""
		},
		Inject: either(nodeRestartInCell, nodeRestartInRush),
	}
}

func nodeRestartInCell(ctx context.Context, t *Testbed) (string, error) {
	how, err := holdBarely(ctx, t)
	if err != nil {
		return "", err
	}
	proof, err := forgetInCell(ctx, t, t.Servers.nodes[0], "one of its nodes", time.Now())
	return how + "; " + proof, err
}

func nodeRestartInRush(ctx context.Context, r *RunningRush) (string, error) {
	on, err := holdBarelyInRush(ctx, r)
	if err != nil {
		return "", err
	}
	if _, err := forget(ctx, on.nodes[0], r.product); err != nil {
		return "", err
	}
	r.others(ctx, 0, r.times.within()) // others may wait for the buyer's row
	return "a buyer of process 1 was stopped before its write; " + on.String() + "; one of them was killed and came back without it", nil
}
