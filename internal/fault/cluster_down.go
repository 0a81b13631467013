package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// clusterDown kills all primaries of a Redis cluster except the node with the holder's lock. The holder is the
// buyer that the fault stops. Without a majority no replica can be elected, and the remaining node refuses
// every command with CLUSTERDOWN. The shop must answer buyers in bounded time, and serve them after the
// outage. The holder finishes during the outage, when it cannot release its lock.
func clusterDown() Fault {
	return Fault{
		Name: "cluster-down", About: "a majority of the primaries of the Redis cluster goes down (CLUSTERDOWN)", OnRedis: topology.Cluster,
		Needs: redisAlone(), Stock: stock,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			g := t.Servers.redises
			t.afterwards(g.mend)
			if err := holdFor(ctx, t, failpoint.Commit, t.Times.Wait); err != nil {
				return "", err
			}
			keeper, _, err := g.keeper(ctx, t.Product)
			if err != nil {
				return "", err
			}
			if err := g.killOthers(ctx, keeper); err != nil {
				return "", err
			}
			t.injected("SIGKILL of a majority of the primaries")
			if err := keeper.refusing(ctx, t.Times.Wait); err != nil {
				return "", err
			}
			refused := oneEach(ctx, t, t.buyers, "next-refused")
			if err := t.release(); err != nil {
				return "", err
			}
			seen(ctx, t, t.Times.Wait, holder, history.Return)
			return bounded(refused, t.Times.Wait)
		},
	}
}

// killOthers kills all primaries except `survivor`. The repair restarts them one by one, so a replica of the
// last one to return may be elected.
func (g *redisGroup) killOthers(ctx context.Context, survivor *redisNode) error {
	all, err := g.primaries(ctx)
	g.asked = true
	for _, node := range all {
		if node != survivor {
			err = errors.Join(err, node.Kill())
		}
	}
	return err
}

func (r *redisNode) refusing(ctx context.Context, timeout time.Duration) error {
	down, _ := until(ctx, timeout, func() (bool, error) {
		state, err := r.clusterInfo(ctx)
		return err == nil && strings.Contains(state, "cluster_state:fail"), nil
	})
	if !down {
		return missed("the node of the lock did not report within %s that the cluster is down", timeout)
	}
	return nil
}

// bounded proves that the shop answered buyers in time while Redis was down. It must have sold no unit, and
// each answer must have come within a buyer's maximum wait plus answerMargin/2.
func bounded(refused []buyers.Answer, wait time.Duration) (proof string, _ error) {
	slowest := time.Duration(0)
	for _, a := range refused {
		if a.Outcome == purchase.Sold || a.Outcome == purchase.SoldOut {
			return "", missed("%s was answered %s though Redis refuses all", a.Purchaser, a.Outcome)
		}
		slowest = max(slowest, a.End.Sub(a.Start))
	}
	if slowest > wait+answerMargin/2 {
		return "", &stalledError{fmt.Sprintf("a buyer was answered after %s though Redis was down", slowest.Round(time.Millisecond))}
	}
	first := refused[0]
	return fmt.Sprintf("the holder reported that it holds; its node reported that the cluster is down, and %d buyers were answered so within %d ms (%s: %s)",
		len(refused), slowest.Milliseconds(), first.Outcome, strings.TrimSpace(first.Detail)), nil
}
