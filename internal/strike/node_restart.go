package strike

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/promise"
)

// nodeRestart has one node of a buyer's bare majority lose what it knows. With the nodes that
// its process could not reach, that is a majority for somebody else.
func nodeRestart() Fault {
	return Fault{
		Name: promise.NodeRestart, About: "one Redlock node of a bare majority comes back empty while a buyer is about to write", Several: true,
		Cannot: func(e *engine.Engine) string {
			if len(nodesOf(e)) == 0 {
				return "the Redlock nodes are not the engine's own"
			}
			return ""
		},
		Strike: func(ctx context.Context, f *Field) (string, error) {
			nodes := nodesOf(f.Engine)
			release, err := f.holdBarely(ctx, nodes)
			if err != nil {
				return "", err
			}
			defer release()
			how, before, err := heldOn(ctx, nodes, f.Product)
			if err != nil {
				return "", err
			}
			if err := errors.Join(nodes[0].Kill(), nodes[0].Start()); err != nil {
				return "", err
			}
			after, err := keysOn(ctx, nodes[0], f.Product)
			switch {
			case err != nil:
				return "", err
			case has(after, before):
				return "", missed("the node has the lock after its restart")
			}
			f.meanwhile(ctx, few, f.Lease/2) // the lease certainly lives; who comes in may wait for the buyer's row
			return "a buyer of process 1 was stopped before its write; " + how + "; one of them was killed and came back without it", ctx.Err()
		},
	}
}

// nodesOf are Redlock's, as far as the engine has started them.
func nodesOf(e *engine.Engine) (nodes []engine.LockServer) {
	for _, s := range e.LockServers {
		if s.Need == string(lockstrategy.NeedsRedlock) {
			nodes = append(nodes, s)
		}
	}
	return nodes
}

// spare are the nodes that may fail: a minority.
func spare(nodes []engine.LockServer) []engine.LockServer { return nodes[len(nodes)-(len(nodes)-1)/2:] }

// barely is how many units others may be sold until a buyer of the struck process has a bare
// majority. The two processes take turns, so it comes long before, if it can.
const barely = 20

// holdBarely is hold, while the spare nodes are cut off from the buyer's process: it has a bare
// majority. A lock that needs all nodes is not granted like that, and then gets all.
func (f *Field) holdBarely(ctx context.Context, nodes []engine.LockServer) (release func(), err error) {
	lines := f.Processes.Lines()[struck]
	for _, n := range spare(nodes) {
		lines.Cut(n.Address())
	}
	waiting, enough := context.WithCancel(ctx)
	patience := make(chan time.Time)
	go func() {
		defer close(patience)
		f.meanwhile(waiting, barely, f.Lease/2)
	}()
	release, err = f.holdUntil(ctx, f.At, patience)
	enough()
	<-patience // nobody else waits for sales now
	if mended := lines.Mend(); mended != nil {
		if err == nil {
			release()
		}
		return nil, mended
	}
	if errors.Is(err, fault.ErrMissed) {
		return f.hold(ctx)
	}
	return release, err
}

// heldOn says how many nodes have the lock of the buyer that is stopped, and returns the keys.
// What else is on the spare nodes is nobody's lock, since the buyer has the others: a try that
// fails, or what was given back while the node was cut off. It is dropped, as it would be within
// a lease.
func heldOn(ctx context.Context, nodes []engine.LockServer, product string) (how string, lock map[string]string, _ error) {
	lock, err := keysOn(ctx, nodes[0], product)
	if err != nil {
		return "", nil, err
	}
	n, there := 0, 0
	for _, one := range nodes {
		keys, err := keysOn(ctx, one, product)
		if err != nil {
			return "", nil, err
		}
		if has(keys, lock) {
			n++
		}
		if len(keys) > 0 {
			there++
		}
	}
	if n == 1 { // a lock with a value of its own on each node
		n = there
	}
	switch bare := len(nodes) - len(spare(nodes)); n {
	case len(nodes):
		return fmt.Sprintf("the lock was on all %d nodes, as it needs them", n), lock, nil
	case bare:
		for _, one := range spare(nodes) {
			if err := drop(ctx, one, slices.Collect(maps.Keys(lock))); err != nil {
				return "", nil, err
			}
		}
		return fmt.Sprintf("the lock was on %d of %d nodes, a bare majority", n, len(nodes)), lock, nil
	}
	return "", nil, missed("the lock was on %d of %d nodes", n, len(nodes))
}

// has reports whether all of the lock's keys are there, as they are in it.
func has(keys, lock map[string]string) bool {
	for key, text := range lock {
		if there, ok := keys[key]; !ok || there != text {
			return false
		}
	}
	return len(lock) > 0
}

func drop(ctx context.Context, node engine.LockServer, keys []string) error {
	c := fault.ClientOf(node.Address())
	defer c.Close()
	return c.Del(ctx, keys...).Err()
}

// keysOn are the node's keys of the product, with what is in them.
func keysOn(ctx context.Context, node engine.LockServer, product string) (map[string]string, error) {
	c := fault.ClientOf(node.Address())
	defer c.Close()
	all := map[string]string{}
	for scan := c.Scan(ctx, 0, "*"+product+"*", 1000).Iterator(); ; {
		if !scan.Next(ctx) {
			return all, scan.Err()
		}
		text, err := c.Get(ctx, scan.Val()).Result()
		if redis.HasErrorPrefix(err, "WRONGTYPE") {
			var hash map[string]string
			hash, err = c.HGetAll(ctx, scan.Val()).Result()
			text = fmt.Sprint(hash) // sorted
		}
		if errors.Is(err, redis.Nil) { // it has just gone
			continue
		}
		if err != nil {
			return nil, err
		}
		all[scan.Val()] = text
	}
}
