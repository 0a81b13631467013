package strike

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// nodeRestart has one node of a buyer's bare majority lose what it knows. With the nodes that
// its process could not reach, that is a majority for somebody else.
func nodeRestart() Fault {
	return Fault{
		Name: promise.NodeRestart, About: "one Redlock node that has the lock, of a bare majority where that will do, comes back empty while a buyer is about to write", Several: true,
		Cannot: func(e *engine.Engine) string {
			if len(serversOf(e, lockstrategy.NeedsRedlock)) == 0 {
				return "the Redlock nodes are not the engine's own"
			}
			return ""
		},
		Strike: func(ctx context.Context, f *Field) (string, error) {
			on, release, err := f.holdBarely(ctx, serversOf(f.Engine, lockstrategy.NeedsRedlock))
			if err != nil {
				return "", err
			}
			defer release()
			if _, err := forget(ctx, on.nodes[0], f.Product); err != nil {
				return "", err
			}
			f.meanwhile(ctx, few, f.Lease/2) // the lease certainly lives; who comes in may wait for the buyer's row
			return "a buyer of process 1 was stopped before its write; " + on.how + "; one of them was killed and came back without it", ctx.Err()
		},
	}
}

// spare are the nodes that may fail: a minority.
func spare(nodes []engine.LockServer) []engine.LockServer { return nodes[len(nodes)-(len(nodes)-1)/2:] }

// barely is how many units others may be sold until a buyer of the struck process has a bare
// majority. The two processes take turns, so it comes long before, if it can.
const barely = 20

// A grant is the lock of the buyer that is stopped.
type grant struct {
	nodes []engine.LockServer // that have it
	how   string              // many they are
}

// barely: one node fewer would be no majority.
func (on grant) barely(nodes []engine.LockServer) bool {
	return len(on.nodes) == len(nodes)-len(spare(nodes))
}

// holdBarely is hold, while the spare nodes are cut off from the buyer's process: it has a bare
// majority. A lock that needs all nodes is not granted like that, and then gets all.
func (f *Field) holdBarely(ctx context.Context, nodes []engine.LockServer) (on grant, release func(), err error) {
	links := f.Processes.Links()[struck]
	for _, n := range spare(nodes) {
		links.To(n.Address()).Cut()
	}
	var needsAll bool
	for range 3 { // a try that was under way may have got more
		if release, needsAll, err = f.holdSoon(ctx); err != nil {
			break
		}
		if on, err = grantOn(ctx, nodes, f.Product); err == nil && on.barely(nodes) {
			err = on.dropOthers(ctx, nodes, f.Product)
			break
		}
		release()
		release, err = nil, cmp.Or(err, missed("the lock was on more nodes than a bare majority"))
	}
	if mended := links.Mend(); mended != nil {
		err, needsAll = errors.Join(err, mended), false
	}
	switch {
	case release != nil && err == nil:
		return on, release, nil
	case release != nil:
		release()
	}
	if !needsAll {
		return on, nil, err
	}
	if release, err = f.hold(ctx); err != nil {
		return on, nil, err
	}
	on, err = grantOn(ctx, nodes, f.Product)
	switch {
	case err != nil:
	case on.barely(nodes): // a slow machine has left the others out
		err = on.dropOthers(ctx, nodes, f.Product)
	case len(on.nodes) < len(nodes):
		err = missed("%s, which is neither a bare majority nor all", on.how)
	}
	if err != nil {
		release()
	}
	return on, release, err
}

// holdSoon is hold, and gives up when others were sold so many units without it that the lock
// must need the nodes that are cut off.
func (f *Field) holdSoon(ctx context.Context) (release func(), needsAll bool, err error) {
	waiting, enough := context.WithCancel(ctx)
	patience, sold := make(chan time.Time), 0
	go func() {
		defer close(patience)
		sold = f.meanwhile(waiting, barely, f.Lease)
	}()
	release, err = f.holdUntil(ctx, f.At, patience)
	enough()
	<-patience // nobody else waits for sales now
	return release, errors.Is(err, fault.ErrMissed) && sold >= barely, err
}

// grantOn finds the nodes that have the lock of the buyer that is stopped: a majority that has
// the same, or all, where each has it in its own words.
func grantOn(ctx context.Context, nodes []engine.LockServer, product string) (on grant, _ error) {
	texts, same := make([]string, len(nodes)), map[string]int{}
	for i, node := range nodes {
		keys, err := keysOn(ctx, node, product)
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
	switch len(on.nodes) {
	case len(nodes):
		on.how = fmt.Sprintf("the lock was on all %d nodes", len(nodes))
	case 0:
		return on, missed("the lock was on no majority of the %d nodes", len(nodes))
	default:
		on.how = fmt.Sprintf("the lock was on %d of %d nodes", len(on.nodes), len(nodes))
	}
	return on, nil
}

// dropOthers drops what else is on the other nodes. It is nobody's lock, since the buyer has a
// majority: a try that fails, or what was given back while the node was cut off. It would be
// dropped within a lease.
func (on grant) dropOthers(ctx context.Context, nodes []engine.LockServer, product string) error {
	for _, node := range nodes {
		if slices.Contains(on.nodes, node) {
			continue
		}
		keys, err := keysOn(ctx, node, product)
		if err != nil {
			return err
		}
		if err := drop(ctx, node, slices.Collect(maps.Keys(keys))); err != nil {
			return err
		}
	}
	return nil
}
