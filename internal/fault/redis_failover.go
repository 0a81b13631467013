package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// redisFailover kills the primary and promotes a replica. The replica's link was cut before the
// holder took its lock: replication is asynchronous, so any failover may do this (Redis
// documentation, "Distributed Locks with Redis", "Why Failover-based Implementations Are Not
// Enough").
func redisFailover() Fault {
	return Fault{
		Name: "redis-failover", About: "Redis fails over to a replica that lacks the last writes",
		Needs: redisAlone(), Stock: stock, Lease: longLease,
		CellOnly: "it needs a replica of Redis, which a cell starts",
		Inject: inCell(func(ctx context.Context, t *Testbed) (string, error) {
			if t.Servers.redises != nil {
				return failOverByItself(ctx, t, t.Servers.redises)
			}
			cord, err := t.Servers.replicate(ctx)
			if err != nil {
				return "", err
			}
			t.afterwards(t.Servers.failBack)
			cord.Cut()
			if err := holdFor(ctx, t, failpoint.Commit, t.Times.Wait); err != nil {
				return "", err
			}
			written, err := t.Servers.redis.keysOf(ctx, t.Product)
			if err != nil {
				return "", err
			}
			if err := t.Servers.promote(ctx, t.A, t.B); err != nil {
				return "", err
			}
			t.injected("SIGKILL of the primary; its replica promoted")
			copied, err := t.Servers.replica.keysOf(ctx, t.Product)
			if err != nil {
				return "", err
			}
			t.others(ctx, 0, t.Times.within())
			if err := t.release(); err != nil {
				return "", err
			}
			return lacked(written, copied)
		}),
	}
}

// lacked proves that the replica did not have the keys that the holder wrote.
func lacked(written, copied map[string]string) (proof string, _ error) {
	n := lacking(written, copied)
	if n == 0 {
		return "", missed("the promoted replica had all of the product's %d keys as the primary had them", len(written))
	}
	return fmt.Sprintf("the holder reported that it holds; the promoted replica lacked %d of the product's %d keys, or had them from before", n, len(written)), nil
}

// replicate makes the replica follow the primary through a link, and waits until it is up to date.
func (s *redisServers) replicate(ctx context.Context) (*testbed.Link, error) {
	if err := s.startReplica(); err != nil {
		return nil, err
	}
	cord, err := testbed.NewLink(s.redis.Addr)
	if err != nil {
		return nil, err
	}
	primary := s.redis.client()
	defer primary.Close()
	// The primary would wait 5 s for other replicas.
	if err := errors.Join(primary.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err(), s.replica.replicaOf(ctx, cord.Addr)); err != nil {
		return nil, err
	}
	same, err := until(ctx, 10*time.Second, func() (bool, error) {
		there, err1 := s.redis.replication(ctx)
		here, err2 := s.replica.replication(ctx)
		return strings.Contains(here, "master_link_status:up") && offset(here, "slave_repl_offset:") == offset(there, "master_repl_offset:"), errors.Join(err1, err2)
	})
	if err == nil && !same {
		err = errors.New("the replica has not caught up within 10 s")
	}
	return cord, err
}

// offset returns a field of INFO, a position in the primary's stream of writes.
func offset(replication, field string) string {
	_, rest, _ := strings.Cut(replication, field)
	number, _, _ := strings.Cut(rest, "\r\n")
	return number
}

// promote kills the primary and redirects the shops to the replica.
func (s *redisServers) promote(ctx context.Context, shops ...*Shop) error {
	c := s.replica.client()
	defer c.Close()
	if err := errors.Join(s.redis.Kill(), c.ReplicaOf(ctx, "NO", "ONE").Err()); err != nil {
		return err
	}
	for _, shop := range shops {
		if err := shop.redis()[0].Redirect(s.replica.Addr); err != nil {
			return err
		}
	}
	return nil
}

// failBack swaps the roles of the two servers for the next runs, if the replica was promoted. The
// shops of this run keep their server.
func (s *redisServers) failBack(context.Context) error {
	if s.redis.ended() { // otherwise the fault missed
		s.redis, s.replica = s.replica, s.redis
		s.locks.Redis = localserver.SingleRedis{Redis: s.redis.Redis}
	}
	return restart(s.replica)
}
