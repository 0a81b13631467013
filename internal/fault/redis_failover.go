package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// redisFailover kills the primary and promotes a replica. The replica's link was
// cut before the holder took its lock: replication is asynchronous, so any failover
// may do this (Redis documentation, "Distributed Locks with Redis", "Why
// Failover-based Implementations Are Not Enough").
func redisFailover() Fault {
	return Fault{
		Name: "redis-failover", About: "to a replica that lacks what was written last",
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

// lacked is the proof that the replica did not have what the holder wrote.
func lacked(written, copied map[string]string) (proof string, _ error) {
	n := lacking(written, copied)
	if n == 0 {
		return "", missed("the promoted replica had all of the product's %d keys as the primary had them", len(written))
	}
	return fmt.Sprintf("the holder reported that it holds; the promoted replica lacked %d of the product's %d keys, or had them from before", n, len(written)), nil
}

// replicate makes the replica follow the primary through a link, and waits until
// it has caught up.
func (s *Servers) replicate(ctx context.Context) (*testbed.Link, error) {
	if err := s.startReplica(); err != nil {
		return nil, err
	}
	cord, err := testbed.NewLink(s.redis.Addr)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(cord.Addr)
	if err != nil {
		return nil, err
	}
	c := s.replica.client()
	defer c.Close()
	primary := s.redis.client()
	defer primary.Close()
	// It would wait 5 s for other replicas to come.
	if err := errors.Join(primary.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err(), c.ReplicaOf(ctx, host, port).Err()); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		info, err := c.Info(ctx, "replication").Result()
		if err != nil {
			return nil, err
		}
		written, err := s.redis.offset(ctx)
		if err != nil {
			return nil, err
		}
		if copied, err := s.replica.offset(ctx); err == nil && copied == written && strings.Contains(info, "master_link_status:up") {
			return cord, nil
		}
	}
	return nil, fmt.Errorf("the replica has not caught up within 10 s")
}

// offset is the server's position in the primary's stream of writes, in bytes.
func (r *redisNode) offset(ctx context.Context) (int64, error) {
	c := r.client()
	defer c.Close()
	info, err := c.Info(ctx, "replication").Result()
	if err != nil {
		return 0, err
	}
	name := "master_repl_offset:"
	if strings.Contains(info, "role:slave") {
		name = "slave_repl_offset:"
	}
	_, rest, _ := strings.Cut(info, name)
	number, _, _ := strings.Cut(rest, "\r\n")
	return strconv.ParseInt(number, 10, 64)
}

// promote kills the primary and redirects the shops to the replica.
func (s *Servers) promote(ctx context.Context, shops ...*Shop) error {
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

// failBack swaps the two servers' roles for the plays to come, where the replica
// was promoted: the shops of this play stay where they are until it ends.
func (s *Servers) failBack(context.Context) error {
	select {
	case <-s.redis.Done():
		s.redis, s.replica = s.replica, s.redis
		s.locks.Redis = localserver.SingleRedis{Redis: s.redis.Redis}
	default: // nobody held, and the fault did not strike
	}
	return restart(s.replica)
}
