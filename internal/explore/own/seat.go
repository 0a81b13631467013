package own

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

type seat struct {
	connector *gate.Connector
	db        *gorm.DB
	redis     *redis.Client
	redlock   []*redis.Client
}

func (x *Runner) open(owner int) (*seat, error) {
	s := &seat{connector: x.gates.NewConnector(x.database, owner)}
	var err error
	s.db, err = x.spec.Engine.OpenWrapped(func(inner driver.Connector) driver.Connector {
		s.connector.Connector = inner
		return s.connector
	}, 2*x.spec.Buyers)
	if err == nil {
		err = gate.PanicIn(s.db)
	}
	if err != nil {
		return nil, err
	}
	for _, server := range x.servers {
		c, err := x.gates.Client(server.Admin(), owner, server.Name, server)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		if strings.HasPrefix(server.Name, "redlock") {
			s.redlock = append(s.redlock, c)
		} else {
			s.redis = c
		}
	}
	return s, nil
}

func (s *seat) close() error {
	err := closePool(s.db)
	if s.redis != nil {
		err = errors.Join(err, s.redis.Close())
	}
	for _, node := range s.redlock {
		err = errors.Join(err, node.Close())
	}
	return err
}

func closePool(db *gorm.DB) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	return pool.Close()
}

// seatOf returns the connections of a buyer, which have gates (its seat); buyer 0 stands for all buyers.
func (x *Runner) seatOf(buyer int) *seat {
	if x.spec.Shared {
		return x.seats[0]
	}
	return x.seats[max(0, buyer-1)]
}

// kill ends a buyer's connections, as the end of its process does. It returns after the server has rolled back their
// transactions.
func (x *Runner) kill(ctx context.Context, buyer int) error {
	for _, c := range x.seatOf(buyer).connector.Open(buyer) {
		c.Abandon()
		if err := x.database.End(ctx, c); err != nil {
			return fmt.Errorf("crash: %w", err)
		}
	}
	return nil
}

func (x *Runner) build(buyers int) (strategies []purchase.Strategy) {
	for i := range buyers {
		switch {
		case !x.spec.Shared:
			strategies = append(strategies, x.spec.Strategy.New(x.deps(i+1)))
		case i == 0:
			strategies = append(strategies, x.spec.Strategy.New(x.deps(0)))
		default:
			strategies = append(strategies, strategies[0])
		}
	}
	return strategies
}

// counters puts each buyer's strategy behind the Spec's front. Each process has its own front.
func (x *Runner) counters(strategies []purchase.Strategy) (counters []purchase.Strategy) {
	for i, s := range strategies {
		if x.spec.Shared && i > 0 {
			counters = append(counters, counters[0])
			continue
		}
		counters = append(counters, x.before(x.seatOf(i+1).db, s))
	}
	return counters
}

// deps returns the dependencies of one buyer's strategy, such as connections and clock; id 0 stands for all buyers.
func (x *Runner) deps(id int) lockstrategy.Deps {
	seat, now := x.seatOf(id), watch{&x.clock, x, id}
	d := lockstrategy.Deps{
		DB: seat.db, Now: now.Now, Clock: now, Renewal: x.renewal(id),
		Settings: lockstrategy.Settings{Wait: schedule.Forever, LeaseTTL: schedule.Forever, Poll: 0},
		Pause: func(ctx context.Context, _ time.Duration) {
			if r := x.current.Load(); r != nil {
				r.inbox.pause(gate.BuyerOf(ctx, id))
			}
		},
	}
	d.Unlock = func(ctx context.Context, unlock func()) {
		if r := x.current.Load(); r == nil || !r.forgets(gate.BuyerOf(ctx, id), unlock) {
			unlock()
		}
	}
	if len(x.spec.Strategy.Needs) == 0 { // for a lock on a server, the commands show the same events
		d.Observe = func(ctx context.Context, e lockstrategy.Event) {
			if r := x.current.Load(); r != nil {
				r.inbox.observe(gate.BuyerOf(ctx, id), e.Kind)
			}
		}
	}
	if seat.redis != nil {
		d.Redis = seat.redis
	}
	for _, node := range seat.redlock {
		d.Redlock = append(d.Redlock, node)
	}
	return d
}
