package fault

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// redisFailover kills the Redis primary and promotes a replica. The replica's link was cut before the holder (the
// buyer that the fault stops) took its lock. Replication is asynchronous, so any failover may lose writes like this
// (Redis documentation, "Distributed Locks with Redis", "Why Failover-based Implementations Are Not Enough").
func redisFailover() Fault {
	return Fault{
		Name: "redis-failover", About: "Redis fails over to a replica that lacks the last writes",
		Needs: redisAlone(), Stock: stock, Lease: longLease,
		Standby: true, Lacks: lacksReplica, InRush: failOverByHand[*RunningRush],
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			if t.Servers.redises != nil {
				return failOverByItself(ctx, t, t.Servers.redises)
			}
			return failOverByHand(ctx, t)
		},
	}
}

func lacksReplica(e *engine.Engine) string {
	if _, isProcess := ownRedis(e).(*localserver.Redis); !isProcess {
		return "it needs one Redis of its own, as a process: --engine local"
	}
	return ""
}

func failOverByHand[F Field](ctx context.Context, f F) (string, error) {
	s := f.setting()
	servers, links := f.redis()
	f.afterwards(func(ctx context.Context) error { return servers.failBack(ctx, links) })
	if err := servers.replicate(ctx); err != nil {
		return "", err
	}
	servers.cord.Cut()
	if _, err := f.hold(ctx, s.Write); err != nil {
		return "", err
	}
	written, err := servers.redis.keysOf(ctx, s.Product)
	if err != nil {
		return "", err
	}
	copied, err := servers.replica.keysOf(ctx, s.Product)
	if err != nil {
		return "", err
	}
	if err := servers.promote(ctx, links); err != nil {
		return "", err
	}
	f.injected("SIGKILL of the primary; its replica promoted")
	f.others(ctx, 0, s.within())
	if err := f.release(); err != nil {
		return "", err
	}
	return lacked(written, copied)
}

// lacked proves that the replica did not have the keys that the holder wrote.
func lacked(written, copied map[string]string) (proof string, _ error) {
	n := lacking(written, copied)
	if n == 0 {
		return "", missed("the promoted replica had all of the product's %d keys as the primary had them", len(written))
	}
	return fmt.Sprintf("the holder reported that it holds; the promoted replica lacked %d of the product's %d keys, or had them from before", n, len(written)), nil
}

// replicate makes the replica follow the primary through a link and waits until the replica is up to date. If
// it already follows, replicate does nothing.
func (s *redisServers) replicate(ctx context.Context) (err error) {
	if s.cord != nil {
		return nil
	}
	if err := s.startReplica(); err != nil {
		return err
	}
	if s.cord, err = testbed.NewLink(s.redis.Addr); err != nil {
		return err
	}
	primary := s.redis.client()
	defer primary.Close()
	// By default the primary waits 5 s for other replicas before it copies its data.
	if err := errors.Join(primary.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err(), s.replica.replicaOf(ctx, s.cord.Addr)); err != nil {
		return err
	}
	return s.caughtUp(ctx)
}

// caughtUp waits until the replica has every write that the primary has now.
func (s *redisServers) caughtUp(ctx context.Context) error {
	there, err := s.redis.replication(ctx)
	if err != nil {
		return err
	}
	same, err := until(ctx, 10*time.Second, func() (bool, error) {
		here, err := s.replica.replication(ctx)
		return strings.Contains(here, "master_link_status:up") && offset(here, "slave_repl_offset:") >= offset(there, "master_repl_offset:"), err
	})
	if err == nil && !same {
		err = errors.New("the replica has not caught up within 10 s")
	}
	return err
}

// offset returns a field of INFO, a position in the primary's stream of writes.
func offset(replication, field string) int64 {
	_, rest, _ := strings.Cut(replication, field)
	number, _, _ := strings.Cut(rest, "\r\n")
	n, _ := strconv.ParseInt(number, 10, 64) // 0 if the field is missing
	return n
}

// promote makes the replica a primary, kills the old one, and redirects the links. In between, the shops have
// no Redis for a moment. A client's retry is enough to bridge it.
func (s *redisServers) promote(ctx context.Context, links testbed.Links) error {
	c := s.replica.client()
	defer c.Close()
	err := errors.Join(c.ReplicaOf(ctx, "NO", "ONE").Err(), s.redis.Kill())
	for _, l := range links {
		err = errors.Join(err, l.Redirect(s.replica.Addr))
	}
	return err
}

// failBack makes the killed primary the primary again. It copies the data of the promoted replica, so no write
// is lost. Afterwards the replica is empty and follows no server.
func (s *redisServers) failBack(ctx context.Context, links testbed.Links) error {
	s.cord = nil // forget the link, which was cut
	if s.redis.ended() {
		if err := s.redis.Start(); err != nil {
			return err
		}
		back := redisServers{redis: s.replica, replica: s.redis}
		if err := back.replicate(ctx); err != nil {
			return err
		}
		c := back.redis.client()
		defer c.Close()
		pause := c.Do(ctx, "CLIENT", "PAUSE", time.Minute.Milliseconds(), "WRITE") // lasts until promote kills this server
		if err := errors.Join(pause.Err(), back.caughtUp(ctx), back.promote(ctx, links)); err != nil {
			return err
		}
		back.cord.Cut()
	}
	if s.replica == nil { // no replica was started, since the fault did not take effect
		return nil
	}
	return restart(s.replica) // a restarted replica follows no server
}
