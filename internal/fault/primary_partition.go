package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// primaryPartition cuts off the Redis primary together with the shop of the lock holder. The sentinels and the
// replicas do not reach the primary, and the shop reaches no other server. The replicas already have the
// holder's lock. One of them is elected and lets the lock expire, while the shop renews the lock at the old
// primary. The command WAIT cannot prevent that, since replication with WAIT is not a consensus protocol.
//
// In a Redis cluster, the cut-off primary refuses writes once it no longer hears from a majority.
func primaryPartition() Fault {
	return Fault{
		Name: "primary-partition", About: "the Redis primary and the holder's shop are cut off together; a replica with the lock becomes primary",
		OnRedis: topology.Sentinel, Needs: redisAlone(), Stock: stock, Lease: 5 * time.Second,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			g := t.Servers.redises
			t.afterwards(g.mend)
			t.afterwards(func(ctx context.Context) error {
				t.A.redis().Heal(ctx)
				return nil
			})
			if err := holdFor(ctx, t, failpoint.Read, t.Times.Wait/4); err != nil {
				return "", err
			}
			old, written, err := g.keeper(ctx, t.Product)
			if err != nil {
				return "", err
			}
			if err := g.awaitCopies(ctx, t.Product, written); err != nil {
				return "", err
			}
			elected, err := isolate(ctx, t, old)
			if err != nil {
				return "", err
			}
			copied, err := elected.keysOf(ctx, t.Product)
			if err != nil {
				return "", err
			}
			if !t.B.Ready(ctx, t.Times.Lease) {
				return "", missed("Redis did not serve again within %s", t.Times.Lease)
			}
			t.others(ctx, 0, t.Times.Lease+3*time.Second)
			if err := t.release(); err != nil {
				return "", err
			}
			t.buyers.wait()
			return fmt.Sprintf("the holder reported that it has read; every replica had the product's %d keys; then the primary reached only the holder's shop, and the sentinels elected a replica, which had %d keys when it was",
				len(written), len(copied)), nil
		},
	}
}

// awaitCopies waits until every node has the keys of the lock, with any value.
func (g *redisGroup) awaitCopies(ctx context.Context, product string, written map[string]string) error {
	for _, node := range g.nodes {
		copied, err := until(ctx, time.Second, func() (bool, error) {
			there, err := node.keysOf(ctx, product)
			for key := range written {
				if _, ok := there[key]; !ok {
					return false, err
				}
			}
			return err == nil, err
		})
		if err != nil {
			return err
		}
		if !copied {
			return missed("%s has not got the product's keys", node.Addr)
		}
	}
	return nil
}

// deaf makes the server refuse new connections and closes the sentinels' connections. The shops keep theirs,
// and one more connection stays open for the repair that undoes all this.
func (r *redisNode) deaf(ctx context.Context, t *Testbed) error {
	c := r.client()
	conn := c.Conn()
	t.afterwards(func(ctx context.Context) error {
		err := conn.Do(ctx, "ACL", "SETUSER", "default", "on").Err()
		return errors.Join(err, conn.Close(), c.Close())
	})
	return errors.Join(
		conn.Do(ctx, "ACL", "SETUSER", localserver.SentinelUser, "off").Err(),
		conn.Do(ctx, "ACL", "SETUSER", "default", "off").Err(),
		conn.Do(ctx, "CLIENT", "KILL", "USER", localserver.SentinelUser).Err())
}

// isolate cuts the primary off from all except A's shop, and that shop from all except the primary.
// It waits until another primary is elected.
func isolate(ctx context.Context, t *Testbed, primary *redisNode) (*redisNode, error) {
	for _, l := range t.A.redis() {
		if l.Server == primary.Addr {
			continue
		}
		if err := l.Silence(); err != nil {
			return nil, err
		}
	}
	return electionAfter(ctx, t, primary, "the primary and the holder's shop reach only each other", time.Now().Add(t.Times.Wait/2), func() error {
		if err := primary.part(ctx); err != nil {
			return err
		}
		return primary.deaf(ctx, t)
	})
}
