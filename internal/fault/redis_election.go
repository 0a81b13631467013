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

// failOverByItself kills the primary with the holder's lock and waits for another primary. The sentinels, or
// the other primaries of the cluster, elect a replica. All replicas were cut off before the holder (the buyer
// that the fault stops) took its lock. Replication is asynchronous, so any failover may lose a lock like this.
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
	elected, err := electionAfter(ctx, t, keeper, "SIGKILL of the primary", held.Add(t.Times.within()), keeper.Kill)
	if err != nil {
		return "", err
	}
	copied, err := elected.keysOf(ctx, t.Product)
	if err != nil {
		return "", err
	}
	by := fmt.Sprintf("; it was elected by the %s itself, %.1f s after the holder held", g.kind, time.Since(held).Seconds())
	if err := passOn(ctx, t, held); err != nil {
		return "", err
	}
	prove := lacked
	if waited {
		prove = hadAll
	}
	proof, err := prove(written, copied)
	return proof + by, err
}

// holdUnconfirmed stops the holder while no replica is connected. A shop that waits for replicas does not grant the
// lock then. In that case holdUnconfirmed resumes replication, so the lock is granted, and returns true.
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

// tried waits until some primary has a new key of the product, or a key with a new value. This shows that
// the holder has asked for the lock. Without this wait, replication could resume before the holder asks.
func (g *redisGroup) tried(ctx context.Context, product string, before map[string]string, timeout time.Duration) error {
	asked, err := until(ctx, timeout, func() (bool, error) {
		now, err := g.keysOf(ctx, product)
		return lacking(now, before) > 0, err
	})
	if err == nil && !asked {
		return missed("no primary had a key of the holder while no replica followed: it may not have asked for its lock")
	}
	return err
}

// electionAfter calls `lose` to take a primary away, and waits until another is elected in its place.
func electionAfter(ctx context.Context, t *Testbed, primary *redisNode, what string, deadline time.Time, lose func() error) (*redisNode, error) {
	g := t.Servers.redises
	before, err := g.primaries(ctx)
	if err != nil {
		return nil, err
	}
	if err := lose(); err != nil {
		return nil, err
	}
	t.injected("%s", what)
	elected, err := g.electedSince(ctx, before, deadline)
	if err != nil {
		return nil, err
	}
	g.asked, g.replaced, g.elected = true, primary, elected
	t.injected("a replica was elected")
	return elected, nil
}

// hadAll proves that a lock survived a failover because it waits for replicas. Without a replica the lock was
// not granted, and the elected replica has its keys.
func hadAll(written, copied map[string]string) (proof string, _ error) {
	if n := lacking(written, copied); n > 0 || len(written) == 0 {
		return "", missed("the elected replica lacked %d of the product's %d keys", n, len(written))
	}
	return fmt.Sprintf("while no replica followed, a primary had the key of the holder, which was not let in; then the holder reported that it holds, and the elected replica had the product's %d keys", len(written)), nil
}

// Undisturbed waits until all Redis servers agree on their roles. The returned function describes a later
// failover that the fault did not cause, or returns "". On a machine that stalls for a second, a primary seems
// dead and is replaced. An injection with such a failover proves nothing.
func (s *redisServers) Undisturbed(ctx context.Context) (disturbed func(context.Context) (string, error), _ error) {
	g := s.redises
	if g == nil {
		return func(context.Context) (string, error) { return "", nil }, nil
	}
	if err := g.settle(ctx); err != nil {
		return nil, err
	}
	g.asked, g.replaced, g.elected = false, nil, nil
	before, err := g.primaries(ctx)
	return func(ctx context.Context) (string, error) {
		if err := g.settle(ctx); err != nil {
			return "", err
		}
		after, err := g.primaries(ctx)
		want := slices.Clone(before)
		if i := slices.Index(want, g.replaced); i >= 0 {
			want[i] = g.elected
		}
		same := len(after) == len(want) && !slices.ContainsFunc(after, func(n *redisNode) bool { return !slices.Contains(want, n) })
		switch {
		case same, g.asked && g.elected == nil:
			return "", err
		case g.asked:
			return "Redis failed over once more after the fault: the machine stood still", err
		}
		return "Redis failed over without a fault: the machine stood still", err
	}, err
}

// electedSince waits for a primary that is not among the given nodes.
func (g *redisGroup) electedSince(ctx context.Context, before []*redisNode, deadline time.Time) (elected *redisNode, _ error) {
	_, _ = until(ctx, time.Until(deadline), func() (bool, error) {
		now, _ := g.primaries(ctx) // an error comes from a dead server
		for _, node := range now {
			if !slices.Contains(before, node) {
				elected = node
			}
		}
		return elected != nil, nil
	})
	if elected == nil {
		return nil, missed("no replica was elected within half of the holder's lease")
	}
	return elected, nil
}
