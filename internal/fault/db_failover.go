package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// dbFailover kills the primary under load and promotes a replica that each COMMIT has waited for. No
// acknowledged sale may be lost.
func dbFailover() Fault {
	return Fault{
		Name: "db-failover", About: "the database is killed under load, and its synchronous replica takes over", On: dialect.Postgres, Stock: 160,
		Inject: func(ctx context.Context, t *Testbed) (string, error) { return failOver(ctx, t, true) },
	}
}

// dbFailoverAsync promotes a replica that no COMMIT has waited for. The replica is cut off a few sales before the
// kill. With asynchronous replication the replica is always a little behind, so any failover may lose sales.
func dbFailoverAsync() Fault {
	return Fault{
		Name: "db-failover-async", About: "the database is killed under load, and a replica without the last commits takes over", On: dialect.Postgres, Stock: 160,
		Inject: func(ctx context.Context, t *Testbed) (string, error) { return failOver(ctx, t, false) },
	}
}

func failOver(ctx context.Context, t *Testbed, synchronous bool) (proof string, err error) {
	f, err := t.Servers.follow(ctx, synchronous)
	if err != nil {
		return "", err
	}
	t.afterwards(f.end)
	if err := behind(ctx, t, t.Servers.db.Address()); err != nil {
		return "", err
	}
	after := int64(0) // sales after the replica was cut off
	kill := outage{
		server: "database", addresses: []string{t.Servers.db.Address()},
		lose: t.Servers.db.Kill, lost: "SIGKILL of the primary", restored: "its replica is promoted",
		restore: func() error {
			if err := f.promote(ctx); err != nil {
				return err
			}
			for _, shop := range t.shops() {
				if err := shop.database[0].Redirect(t.Servers.db.Address()); err != nil {
					return err
				}
			}
			return nil
		},
		meanwhile: func(*load) {}, // the replica is promoted at once
	}
	if !synchronous {
		kill.before = func(l *load) {
			f.cord.Cut()
			cut := l.sold.Load()
			l.awaitSold(ctx, cut+enough/2)
			after = l.sold.Load() - cut
		}
	}
	if proof, err = kill.underLoad(ctx, t); err != nil {
		return "", err
	}
	if !synchronous && after <= loaders {
		return "", missed("no more sales were acknowledged after the replica was cut off than were under way")
	}
	if synchronous {
		return proof + "; each COMMIT had waited for the replica that was promoted", nil
	}
	return fmt.Sprintf("%s; %d sales were acknowledged after the promoted replica had been cut off; at most %d of them were committed before", proof, after, loaders), nil
}

// A following is a replica that follows the database. It serves one failover.
type following struct {
	server   *sqlServer
	primary  localserver.Replicated
	replica  localserver.Replica
	cord     *testbed.Link // the link through which it replicates
	promoted bool
}

func (s *sqlServer) follow(ctx context.Context, synchronous bool) (*following, error) {
	db, ok := s.db.(localserver.Replicated)
	if !ok {
		return nil, errors.New("this database has no replicas here")
	}
	cord, err := testbed.NewLink(db.Address())
	if err != nil {
		return nil, err
	}
	f := &following{server: s, primary: db, cord: cord}
	if f.replica, err = db.Replicate(cord.Addr, synchronous); err != nil {
		cord.Cut()
		return nil, err
	}
	return f, s.reopen(ctx)
}

func (f *following) promote(ctx context.Context) error {
	if err := f.replica.Promote(); err != nil {
		return err
	}
	lost := f.primary
	f.server.db, f.promoted = f.replica, true
	return errors.Join(lost.Remove(), f.server.reopen(ctx))
}

func (f *following) end(context.Context) error {
	f.cord.Cut()
	if f.promoted {
		return nil
	}
	return errors.Join(f.primary.Alone(), f.replica.Remove())
}

// behind restarts both shops. Each shop then reaches the given addresses through links (proxies that a fault
// can cut) and does not connect to the database directly.
func behind(ctx context.Context, t *Testbed, addresses ...string) error {
	t.Servers.front = addresses
	t.afterwards(func(context.Context) error { t.Servers.front = nil; return nil })
	return t.anew(ctx)
}
