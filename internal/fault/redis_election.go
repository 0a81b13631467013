package fault

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/failpoint"
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
	if err := t.hold(ctx, failpoint.Commit, t.Times.Wait); err != nil {
		return "", err
	}
	held := time.Now()
	before, err := g.primaries(ctx)
	if err != nil {
		return "", err
	}
	keeper, written, err := g.keeper(ctx, t.Product)
	if err != nil {
		return "", err
	}
	if err := keeper.Kill(); err != nil {
		return "", err
	}
	t.struck("SIGKILL of the primary")
	elected, err := g.elected(ctx, before, held.Add(t.Times.within()))
	if err != nil {
		return "", err
	}
	t.Servers.asked = true
	t.struck("a replica was elected")
	copied, err := elected.keysOf(ctx, t.Product)
	if err != nil {
		return "", err
	}
	if err := t.servedAgain(ctx, held); err != nil {
		return "", err
	}
	took := time.Since(held)
	sendNext(ctx, t, t.Times.within())
	if err := t.release(); err != nil {
		return "", err
	}
	proof, err := lacked(written, copied)
	return fmt.Sprintf("%s; it was elected by the %s itself, %.1f s after the holder held", proof, g.kind, took.Seconds()), err
}

// Undisturbed waits until Redis is whole, and returns a function that says whether a replica
// was elected since then though no fault has asked for it: on a machine that stands still
// for a second a primary counts as dead, and what follows proves nothing. "": none was.
func (s *Servers) Undisturbed(ctx context.Context) (disturbed func(context.Context) (string, error), _ error) {
	if s.redises == nil {
		return func(context.Context) (string, error) { return "", nil }, nil
	}
	if err := s.redises.settle(ctx); err != nil {
		return nil, err
	}
	s.asked = false
	before, err := s.redises.primaries(ctx)
	return func(ctx context.Context) (string, error) {
		if err := s.redises.settle(ctx); err != nil {
			return "", err
		}
		after, err := s.redises.primaries(ctx)
		if s.asked || slices.Equal(before, after) {
			return "", err
		}
		return "Redis failed over though nothing had struck it: the machine stood still", err
	}, err
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
