package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/purchase"
)

// nodesDown kills first a minority of the Redlock nodes and then a majority. While a minority is down, buyers must
// still be served. While a majority is down, no buyer may get the lock. If a buyer gets it all the same, nodesDown
// stops it at its COMMIT and restarts the nodes empty. Then another buyer can get a majority and oversell.
func nodesDown() Fault {
	return Fault{
		Name: "nodes-down", About: "a minority of the Redlock nodes goes down, then a majority",
		Needs: redlockNodes(), Stock: 2 * stock,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			all := len(t.Servers.nodes)
			few, most := t.Servers.nodes[:minority(len(t.Servers.nodes))], t.Servers.nodes[:minority(len(t.Servers.nodes))+1]
			t.afterwards(func(context.Context) error { return startAgain(most) })
			if err := each(few, (*redisNode).Kill); err != nil {
				return "", err
			}
			t.injected("SIGKILL of %d of %d nodes", len(few), all)
			under := count(t.buyers.crowd(ctx, "minority", 8, t.A, t.B), purchase.Sold)
			if err := each(most, (*redisNode).Kill); err != nil {
				return "", err
			}
			t.injected("SIGKILL of %d of %d nodes", len(most), all)
			granted, err := withoutMajority(ctx, t, most)
			if err != nil {
				return "", err
			}
			proof := fmt.Sprintf("%d of 8 buyers were sold a unit with %d of %d nodes killed; with %d killed %s", under, len(few), all, len(most), granted)
			if under == 0 {
				return proof, &stalledError{fmt.Sprintf("no buyer could buy while %d of %d nodes were down", len(few), all)}
			}
			return proof, nil
		},
	}
}

// withoutMajority sends buyers while most nodes are down. Its text `granted` says whether one got the lock.
func withoutMajority(ctx context.Context, t *Testbed, most []*redisNode) (granted string, _ error) {
	if slices.ContainsFunc(most, func(n *redisNode) bool { return !n.ended() }) {
		return "", missed("a node runs after its SIGKILL")
	}
	if err := arm(ctx, t, failpoint.Commit); err != nil {
		return "", err
	}
	t.buyers.send(ctx, t.A, holder)
	for i := range 3 {
		t.buyers.send(ctx, t.shops()[i%2], fmt.Sprintf("majority-%d", i))
	}
	// The shop refuses the buyer at once or after its wait, or grants a lock without a majority.
	e, _ := seen(ctx, t, t.Times.Wait+answerMargin, holder, history.Holding, history.Answered)
	if e.Kind != history.Holding {
		t.buyers.wait()
		sold := count(t.buyers.answers(), purchase.Sold, "majority-0", "majority-1", "majority-2")
		return fmt.Sprintf("the holder was answered %s, and %d of 3 others were sold a unit", e.Outcome, sold), nil
	}
	if err := startAgain(most); err != nil {
		return "", err
	}
	t.injected("%d nodes are back, empty, while a buyer holds the others", len(most))
	t.others(ctx, 0, t.Times.within())
	return "a buyer was granted the lock", t.release()
}

func startAgain(nodes []*redisNode) error {
	var errs []error
	for _, node := range nodes {
		if node.ended() {
			errs = append(errs, node.Start())
		}
	}
	return errors.Join(errs...)
}
