package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// minority is the largest number of nodes that may fail.
func minority(all int) int { return (all - 1) / 2 }

// A grant is a lock on several nodes.
type grant struct {
	nodes []engine.Restartable // the nodes that have it
	all   int
}

// String says how many nodes have the lock.
func (on grant) String() string {
	if len(on.nodes) == on.all {
		return fmt.Sprintf("the lock was on all %d nodes", on.all)
	}
	return fmt.Sprintf("the lock was on %d of %d nodes", len(on.nodes), on.all)
}

// isBare reports whether losing one node would lose the majority.
func (on grant) isBare() bool { return len(on.nodes) == on.all-minority(on.all) }

// isWhole reports whether all nodes have the lock.
func (on grant) isWhole() bool { return len(on.nodes) == on.all }

// grantOn finds the nodes that have the lock of the held buyer. Either a majority has the same
// keys, or all nodes have keys, which may differ from node to node. Otherwise it returns ErrMissed.
func grantOn[Node engine.Restartable](ctx context.Context, nodes []Node, product string) (on grant, _ error) {
	on.all = len(nodes)
	texts, same := make([]string, len(nodes)), map[string]int{}
	for i, node := range nodes {
		keys, err := keysOf(ctx, node.Address(), product)
		if err != nil {
			return on, err
		}
		if len(keys) > 0 {
			texts[i] = fmt.Sprint(keys) // sorted
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

// holdBarely calls Testbed.hold for a lock on several nodes. While the holder acquires the lock, a
// minority of the nodes is cut off from its shop, so that it gets a bare majority. A lock that
// needs all nodes cannot be acquired like that. It then gets all of them, and how says so.
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
	return heldOn(on)
}

// heldOn says how many nodes have the holder's lock. These faults apply to two locks: one gets a
// bare majority, the other all nodes. Any other number is an error.
func heldOn(on grant) (how string, _ error) {
	switch {
	case on.isBare():
		return fmt.Sprintf("the lock is on %d of %d nodes, a bare majority", len(on.nodes), on.all), nil
	case on.isWhole():
		return fmt.Sprintf("the lock is on all %d nodes, as it needs them", on.all), nil
	}
	return "", missed("%s", on)
}

// enoughWithout is how many units others may buy before the search for a bare majority ends. The
// two processes take turns, so a buyer of the first process gets the lock long before, if it can.
const enoughWithout = 20

// holdBarelyInRush is holdBarely in a running rush, whose other buyers write to the nodes
// meanwhile.
func holdBarelyInRush(ctx context.Context, r *RunningRush) (on grant, err error) {
	on, err = holdWithout(ctx, r, holdSoon)
	if !errors.Is(err, errNotSoon) {
		return on, err
	}
	nodes := startedServers(r.Engine, lockstrategy.NeedsRedlock) // it seems to need all of them
	if _, err = r.hold(ctx, r.write); err != nil {
		return on, err
	}
	on, err = grantOn(ctx, nodes, r.product)
	switch {
	case err != nil || on.isWhole():
		return on, err
	case on.isBare(): // a slow machine has skipped some
		return on, on.dropOthers(ctx, nodes, r.product)
	}
	// It does not need all nodes. The first process was only slower than enoughWithout expects.
	_ = r.release()
	return holdWithout(ctx, r, func(ctx context.Context, r *RunningRush) error {
		_, err := r.hold(ctx, r.write)
		return err
	})
}

// holdWithout calls hold while a minority of the nodes is cut off from the first process. It
// returns ErrMissed if the lock is not on a bare majority then.
func holdWithout(ctx context.Context, r *RunningRush, hold func(context.Context, *RunningRush) error) (on grant, err error) {
	nodes, links := startedServers(r.Engine, lockstrategy.NeedsRedlock), r.Links[firstProcess]
	for _, n := range nodes[len(nodes)-minority(len(nodes)):] {
		links.To(n.Address()).Cut()
	}
	for range 3 { // an attempt that was under way may have reached more nodes
		if err = hold(ctx, r); err != nil {
			break
		}
		if on, err = grantOn(ctx, nodes, r.product); err == nil && on.isBare() {
			err = on.dropOthers(ctx, nodes, r.product) // before the process can reach them again
			break
		}
		_ = r.release()
		err = cmp.Or(err, missed("%s, and not on a bare majority", on))
	}
	if broken := links.Mend(); broken != nil {
		return on, fmt.Errorf("let the process reach its nodes again: %w", broken)
	}
	return on, err
}

// errNotSoon is the error of holdSoon.
var errNotSoon = missed("others bought all the time, and no buyer reached its write")

// holdSoon calls hold. It returns errNotSoon after enoughWithout sales to others: the lock probably
// needs the nodes that are cut off.
func holdSoon(ctx context.Context, r *RunningRush) error {
	waiting, enough := context.WithCancel(ctx)
	patience, sold := make(chan time.Time), 0
	go func() {
		defer close(patience)
		sold = r.tally.await(waiting, enoughWithout, r.times.Lease)
	}()
	_, err := r.holdUntil(ctx, r.write, patience)
	enough()
	<-patience // now only hold waits for sales
	if errors.Is(err, ErrMissed) && sold >= enoughWithout {
		return errNotSoon
	}
	return err
}

// dropOthers deletes the other keys on the other nodes. They are no locks, since the held buyer has
// a majority. They come from a failed attempt, or from a release while the node was cut off, and
// would expire within a lease.
func (on grant) dropOthers(ctx context.Context, nodes []engine.LockServer, product string) error {
	for _, node := range nodes {
		if slices.Contains(on.nodes, engine.Restartable(node)) {
			continue
		}
		keys, err := keysOf(ctx, node.Address(), product)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			continue
		}
		c := clientOf(node.Address())
		err = errors.Join(c.Del(ctx, slices.Collect(maps.Keys(keys))...).Err(), c.Close())
		if err != nil {
			return err
		}
	}
	return nil
}
