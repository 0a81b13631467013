package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/oversell/oversell/internal/fault/failpoint"
)

// minority is the largest number of nodes that may fail.
func minority(all int) int { return (all - 1) / 2 }

// A grant is a lock on several independent Redis nodes (Redlock).
type grant struct {
	nodes []*redisNode // the nodes with the lock
	all   int
}

// String says on how many nodes the lock is.
func (on grant) String() string {
	if len(on.nodes) == on.all {
		return fmt.Sprintf("the lock was on all %d nodes", on.all)
	}
	return fmt.Sprintf("the lock was on %d of %d nodes", len(on.nodes), on.all)
}

// isBare reports whether losing one node would lose the majority.
func (on grant) isBare() bool { return len(on.nodes) == on.all-minority(on.all) }

func (on grant) isWhole() bool { return len(on.nodes) == on.all }

// grantOn finds the nodes with the lock of the stopped buyer. It accepts two cases: a majority of the nodes
// has the same keys, or all nodes have keys, which may differ. Otherwise it returns ErrMissed.
func grantOn(ctx context.Context, nodes []*redisNode, product string) (on grant, _ error) {
	on.all = len(nodes)
	texts, same := make([]string, len(nodes)), map[string]int{}
	for i, node := range nodes {
		keys, err := node.keysOf(ctx, product)
		if err != nil {
			return on, err
		}
		if len(keys) > 0 {
			texts[i] = fmt.Sprint(keys) // Sprint sorts the keys
			same[texts[i]]++
		}
	}
	for i, node := range nodes {
		if len(same) == len(nodes) || 2*same[texts[i]] > len(nodes) {
			on.nodes = append(on.nodes, node)
		}
	}
	if len(on.nodes) == 0 {
		return on, missed("the lock was on no majority of the %d nodes", len(nodes))
	}
	return on, nil
}

// holdBarely stops the holder of a lock on several nodes. While the holder acquires the lock, holdBarely cuts a
// minority of the nodes off from the holder's shop, so only a bare majority can grant it. A strategy that needs all
// nodes gets no lock then. In this case holdBarely reconnects the nodes, and its result `how` says so.
func holdBarely(ctx context.Context, t *Testbed) (how string, err error) {
	nodes := t.A.nodes()
	spare := nodes[len(nodes)-minority(len(nodes)):]
	spare.Cut()
	err = holdFor(ctx, t, failpoint.Commit, t.Times.Wait/4)
	if broken := spare.Mend(); broken != nil {
		return "", broken
	}
	if errors.Is(err, errNoHolder) {
		// The holder is still trying and can now reach all nodes.
		err = holding(ctx, t, t.Times.Wait)
	}
	if err != nil {
		return "", err
	}
	on, err := grantOn(ctx, t.Servers.nodes, t.Product)
	if err != nil {
		return "", err
	}
	if how, err = heldOn(on); err != nil || len(nodes)%2 == 1 {
		return how, err
	}
	// With an even number of nodes, two must lose the lock before another buyer can have a majority.
	return how + "; a second node restarted empty, since their number is even", restart(t.Servers.nodes[1])
}

// heldOn says how many nodes have the holder's lock. It returns an error unless a bare majority or all nodes
// have it.
func heldOn(on grant) (how string, _ error) {
	switch {
	case on.isBare():
		return fmt.Sprintf("the lock is on %d of %d nodes, a bare majority", len(on.nodes), on.all), nil
	case on.isWhole():
		return fmt.Sprintf("the lock is on all %d nodes, as it needs them", on.all), nil
	}
	return "", missed("%s", on)
}
