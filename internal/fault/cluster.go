package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// A cluster is a database of several nodes, any of which a fault can take away. Shop A connects to the first
// node first, shop B to the second.
type cluster interface {
	localserver.Database
	Nodes() []*localserver.GaleraNode
	Bootstrap() error
}

// addressesOf returns the addresses of the nodes, in the order of the cluster's URL.
func addressesOf(c cluster) (all []string) {
	for _, node := range c.Nodes() {
		all = append(all, node.Address())
	}
	return all
}

// addresses returns the addresses of the database: one, or those of the nodes.
func (s *sqlServer) addresses() []string {
	if c, ok := s.clustered(); ok {
		return addressesOf(c)
	}
	return []string{s.db.Address()}
}

func (s *sqlServer) clustered() (cluster, bool) {
	c, ok := s.db.(cluster)
	return c, ok
}

// errNoCluster reports a bug in this package: Fault.On restricts the faults of cluster nodes to Galera.
var errNoCluster = errors.New("this database is no cluster")

// clusterPatience is how long a cluster may take to notice that a node has gone, or to bring it
// back up to date. It does not affect the verdict.
const clusterPatience = 2 * time.Minute

// await polls the status of a node until the function `is` returns true. The text `what` names the condition.
func await(ctx context.Context, n *localserver.GaleraNode, what string, is func(localserver.GaleraStatus) bool) error {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	for {
		s, err := n.Status(ctx)
		if err == nil && is(s) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s was not %s within %s: %+v, %w", n.Address(), what, clusterPatience, s, errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// awaitWhole returns when every node is up to date and sees all nodes in the cluster.
func awaitWhole(ctx context.Context, c cluster) error {
	var errs []error
	for _, n := range c.Nodes() {
		errs = append(errs, await(ctx, n, "one of all nodes", func(s localserver.GaleraStatus) bool {
			return s.Ready && s.State == "Synced" && s.Size == len(c.Nodes())
		}))
	}
	return errors.Join(errs...)
}

// awaitWithout returns when all other nodes have removed the node `gone` from the cluster.
func awaitWithout(ctx context.Context, c cluster, gone *localserver.GaleraNode) error {
	for _, n := range c.Nodes() {
		if n == gone {
			continue
		}
		if err := await(ctx, n, "a cluster without "+gone.Address(), func(s localserver.GaleraStatus) bool {
			return s.Ready && s.Cluster == "Primary" && s.Size == len(c.Nodes())-1
		}); err != nil {
			return err
		}
	}
	return nil
}

// goesOn lets buyers buy until at least one unit is sold while a node is gone. Then it stops new buyers. It
// returns the number of units sold.
func goesOn(ctx context.Context, l *load) (sold int64) {
	before := l.sold.Load()
	// A buyer whose COMMIT waits for a frozen node still holds its lock, so the next sale may take long.
	for deadline := time.Now().Add(clusterPatience); l.sold.Load() == before && time.Now().Before(deadline); {
		l.awaitSold(ctx, before+enough/2)
	}
	l.cancel()
	return l.sold.Load() - before
}

// insideCommit stops a buyer of A at its COMMIT, calls lose to take A's node away, and lets the buyer go on.
func insideCommit(ctx context.Context, t *Testbed, lose func() error) error {
	if err := t.anew(ctx); err != nil {
		return err
	}
	if err := warm(ctx, t, t.A); err != nil {
		return err
	}
	if err := holdFor(ctx, t, failpoint.Commit, t.Times.Wait); err != nil {
		return err
	}
	if err := lose(); err != nil {
		return err
	}
	return t.release()
}

// mostly returns a proof that a node was lost under load while the other nodes sold, or ErrMissed.
func mostly(before, meanwhile int64, cut int) (proof string, _ error) {
	if before < enough || meanwhile == 0 || cut == 0 {
		return "", missed("%d sales were acknowledged before, %d buyers were under way, and %d were sold a unit while the node was gone", before, cut, meanwhile)
	}
	return fmt.Sprintf("%d sales were acknowledged before and %d buyers under way; the other nodes saw it go (wsrep_cluster_size 2) and sold %d units without it", before, cut, meanwhile), nil
}

// seqnos returns the number of the last write that each node has applied.
func seqnos(ctx context.Context, c cluster) []int64 {
	var all []int64
	for _, n := range c.Nodes() {
		s, _ := n.Status(ctx)
		all = append(all, s.Seqno)
	}
	return slices.Clip(all)
}
