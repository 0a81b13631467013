package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
)

// failOverByItself kills the primary that has the holder's lock and waits until its
// sentinels, or the other primaries of its cluster, have elected a replica. The replicas
// were kept from what the primaries write before the holder took its lock: replication is
// asynchronous, so any failover may do this.
func failOverByItself(ctx context.Context, t *Testbed, g *redisGroup) (string, error) {
	t.afterwards(g.mend)
	if err := g.part(ctx); err != nil {
		return "", err
	}
	waited, err := holdUnconfirmed(ctx, t, g)
	if err != nil {
		return "", err
	}
	held := time.Now()
	keeper, written, err := g.keeper(ctx, t.Product)
	if err != nil {
		return "", err
	}
	elected, err := g.killAndElect(ctx, t, keeper, held.Add(t.Times.within()))
	if err != nil {
		return "", err
	}
	copied, err := elected.keysOf(ctx, t.Product)
	if err != nil {
		return "", err
	}
	if err := servedAgain(ctx, t, held); err != nil {
		return "", err
	}
	by := fmt.Sprintf("; it was elected by the %s itself, %.1f s after the holder held", g.kind, time.Since(held).Seconds())
	t.others(ctx, 0, t.Times.within())
	if err := t.release(); err != nil {
		return "", err
	}
	if waited {
		proof, err := hadAll(written, copied)
		return proof + by, err
	}
	proof, err := lacked(written, copied)
	return proof + by, err
}

// holdUnconfirmed is Testbed.hold while no replica follows. Where a lock counts only when
// replicas have it, it is not granted then; they may follow again, and waited is true.
func holdUnconfirmed(ctx context.Context, t *Testbed, g *redisGroup) (waited bool, _ error) {
	if !t.Confirmed {
		return false, holdFor(ctx, t, failpoint.Commit, t.Times.Wait)
	}
	before, err := g.keysOf(ctx, t.Product)
	if err != nil {
		return false, err
	}
	if err := holdFor(ctx, t, failpoint.Commit, t.Times.Wait/6); !errors.Is(err, errNoHolder) {
		return false, err
	}
	if err := g.tried(ctx, t.Product, before, t.Times.Wait/12); err != nil {
		return false, err
	}
	if err := g.mend(ctx); err != nil {
		return false, err
	}
	return true, holding(ctx, t, t.Times.Wait/2)
}

// keysOf are the product's keys on all primaries.
func (g *redisGroup) keysOf(ctx context.Context, product string) (map[string]string, error) {
	all, err := g.primaries(ctx)
	if err != nil {
		return nil, err
	}
	keys := map[string]string{}
	for _, node := range all {
		there, err := node.keysOf(ctx, product)
		if err != nil {
			return nil, err
		}
		maps.Copy(keys, there)
	}
	return keys, nil
}

// tried waits until some primary has a key of the product that was not there before, or was
// another one: somebody is asking for the lock. A buyer that is not in may not have come.
func (g *redisGroup) tried(ctx context.Context, product string, before map[string]string, timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(5 * time.Millisecond) {
		now, err := g.keysOf(ctx, product)
		if err != nil {
			return err
		}
		if lacking(now, before) > 0 {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return missed("no primary had a key of the holder while no replica followed: it may not have asked for its lock")
		}
	}
}

// killAndElect kills the primary and waits for the one that is elected in its place.
func (g *redisGroup) killAndElect(ctx context.Context, t *Testbed, primary *redisNode, until time.Time) (*redisNode, error) {
	before, err := g.primaries(ctx)
	if err != nil {
		return nil, err
	}
	if err := primary.Kill(); err != nil {
		return nil, err
	}
	t.injected("SIGKILL of the primary")
	elected, err := g.elected(ctx, before, until)
	if err != nil {
		return nil, err
	}
	t.Servers.asked, t.Servers.replaced, t.Servers.elected = true, primary, elected
	t.injected("a replica was elected")
	return elected, nil
}

// hadAll is the proof of a failover that a confirmed lock outlives: it did not count
// while no replica followed, and the one that was elected has it.
func hadAll(written, copied map[string]string) (proof string, _ error) {
	if n := lacking(written, copied); n > 0 || len(written) == 0 {
		return "", missed("the elected replica lacked %d of the product's %d keys", n, len(written))
	}
	return fmt.Sprintf("while no replica followed, a primary had the key of the holder, which was not let in; then the holder reported that it holds, and the elected replica had the product's %d keys", len(written)), nil
}

// Undisturbed waits until Redis is whole, and returns a function that says whether a replica
// was elected since then that no fault has asked for, or another one after it: on a machine
// that stands still for a second a primary counts as dead, and what follows proves nothing.
// "": none was.
func (s *Servers) Undisturbed(ctx context.Context) (disturbed func(context.Context) (string, error), _ error) {
	if s.redises == nil {
		return func(context.Context) (string, error) { return "", nil }, nil
	}
	if err := s.redises.settle(ctx); err != nil {
		return nil, err
	}
	s.asked, s.replaced, s.elected = false, nil, nil
	before, err := s.redises.primaries(ctx)
	return func(ctx context.Context) (string, error) {
		if err := s.redises.settle(ctx); err != nil {
			return "", err
		}
		after, err := s.redises.primaries(ctx)
		switch {
		case s.elected != nil && !slices.Equal(after, s.redises.inOrder(replace(before, s.replaced, s.elected))):
			return "Redis failed over once more than it was struck: the machine stood still", err
		case s.asked, slices.Equal(before, after):
			return "", err
		}
		return "Redis failed over though nothing had struck it: the machine stood still", err
	}, err
}

// replace is the nodes with one in the place of another.
func replace(nodes []*redisNode, old, by *redisNode) []*redisNode {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		if nodes[i] == old {
			nodes[i] = by
		}
	}
	return nodes
}

// inOrder is the nodes in the order of the group, as primaries has them.
func (g *redisGroup) inOrder(nodes []*redisNode) (all []*redisNode) {
	for _, node := range g.nodes {
		if slices.Contains(nodes, node) {
			all = append(all, node)
		}
	}
	return all
}

// elected waits for a primary that was none before.
func (g *redisGroup) elected(ctx context.Context, before []*redisNode, until time.Time) (*redisNode, error) {
	for ; time.Now().Before(until) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		now, err := g.primaries(ctx)
		if err != nil {
			continue
		}
		for _, node := range now {
			if !slices.Contains(before, node) {
				return node, nil
			}
		}
	}
	return nil, missed("no replica was elected within half of the holder's lease")
}
