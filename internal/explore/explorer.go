package explore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// Nodes is how many Redlock nodes an exploration uses: the fewest with a
// majority that is not all.
const Nodes = 3

// Bounds of Config.
const (
	MinBuyers = 2
	MaxBuyers = 8
)

// Config says what is explored.
type Config struct {
	Engine    *engine.Engine // of this exploration alone
	Strategy  lockstrategy.Entry
	Buyers    int    // MinBuyers to MaxBuyers, one unit each
	Stock     int64  // units on sale
	Product   string // its records are cleared, again and again
	Events    []Event
	MaxEvents int           // of them in one schedule, at most; 0: each may happen
	Bound     int           // preemptions in one schedule, at most; negative: no bound
	Reduce    bool          // one schedule of each class that no server can tell apart
	Alike     bool          // of buyers who have not begun the first begins: who of them it is makes no difference but in name
	Overlap   bool          // two buyers' commands may go to one server at once
	Shared    bool          // all buyers in one process
	Budget    time.Duration // for the search
	First     bool          // end at the first violation; it need not be the shortest

	// Progress is told now and then; may be nil.
	Progress func(explored, violations int)
}

// An Explorer runs schedules of one strategy. It is for one goroutine.
type Explorer struct {
	config   Config
	gates    *gates
	seats    []seat // one a buyer; one for all with Config.Shared
	servers  []*redisServer
	admin    *sql.DB
	database database

	concurrent bool // a buyer may have several commands on the way
	nodes      int  // of Redlock, all of which a buyer may ask at once; 0: none

	clock  clock
	timer  *time.Timer
	stacks []byte
	idle   []metrics.Sample
}

// A seat is one buyer's connections.
type seat struct {
	connector *sqlConnector
	db        *gorm.DB
	redis     *redis.Client
	redlock   []*redis.Client
}

// redisServer is one server as the explorer sees it.
type redisServer struct {
	name  string
	admin redis.UniversalClient
	keys  *keySet

	counted bool // nobody has been let near it since
	count   int64
}

// New opens the buyers' connections. Close must follow.
func New(ctx context.Context, c Config) (*Explorer, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	x := &Explorer{
		config: c, timer: time.NewTimer(time.Hour), stacks: make([]byte, 1<<18), idle: idleCounters(),
		gates: &gates{
			scripts: &scripts{names: map[string]string{}, sent: map[[2]string]bool{}},
			pubsub:  &pubsub{taps: map[*tap]struct{}{}},
		},
	}
	pool, err := c.Engine.OpenWrapped(func(inner driver.Connector) driver.Connector { return inner }, 2)
	if err != nil {
		return nil, err
	}
	if x.admin, err = pool.DB(); err != nil {
		return nil, err
	}
	x.database = sqliteDatabase{}
	if c.Engine.DB.Name() == "mysql" {
		x.database = mysqlDatabase{x.admin}
	}
	if c.Engine.Redis != nil {
		x.servers = append(x.servers, &redisServer{name: "redis", admin: c.Engine.Redis, keys: &keySet{}})
	}
	if x.needs(lockstrategy.NeedsRedlock) {
		for i, node := range c.Engine.Redlock[:min(Nodes, len(c.Engine.Redlock))] {
			x.servers = append(x.servers, &redisServer{name: fmt.Sprintf("redlock-%d", i+1), admin: node, keys: &keySet{}})
		}
	}
	seats := c.Buyers
	if c.Shared {
		seats = 1
	}
	for i := range seats {
		owner := i + 1
		if c.Shared {
			owner = 0
		}
		if err := x.open(owner); err != nil {
			return nil, errors.Join(err, x.Close())
		}
	}
	if err := product.Put(c.Engine.Admin.WithContext(ctx), c.Product, c.Stock); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	if err := x.database.prepare(ctx, c.Engine.Name == engine.Local); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	probe := c.Strategy.New(x.deps(0))
	_, worker := probe.(purchase.Worker)
	if lock, ok := probe.(purchase.Resetter); ok { // of whoever explored before
		if err := lock.Reset(ctx, c.Product); err != nil {
			return nil, errors.Join(err, x.Close())
		}
	}
	if c, ok := probe.(io.Closer); ok {
		_ = c.Close()
	}
	x.concurrent = worker || c.Shared
	if x.needs(lockstrategy.NeedsRedlock) {
		x.nodes = len(x.seats[0].redlock)
	}
	return x, nil
}

// Check says what is wrong with the configuration, in one line, before there is
// an engine.
func (c Config) Check() error {
	switch {
	case c.Buyers < MinBuyers || c.Buyers > MaxBuyers:
		return fmt.Errorf("--buyers is %d; %d to %d are allowed", c.Buyers, MinBuyers, MaxBuyers)
	case c.Stock < 1 || c.Stock > int64(MaxBuyers):
		return fmt.Errorf("--stock is %d; 1 to %d are allowed", c.Stock, MaxBuyers)
	case c.Bound >= 0 && c.Reduce:
		return errors.New("--bound and --reduce exclude each other: a schedule that the reduction leaves out may be the one within the bound")
	case c.Overlap && c.Reduce:
		return errors.New("--overlap and --reduce exclude each other: what the reduction leaves out may overlap in another way")
	case c.Shared && slices.Contains(c.Events, Crash):
		return errors.New("--instances shared has no crash: the one process would take all buyers with it")
	}
	for _, need := range c.Strategy.Needs {
		if need == lockstrategy.NeedsZookeeper || need == lockstrategy.NeedsEtcd {
			return fmt.Errorf("strategy %s: the explorer has gates for SQL and Redis, not for %s", c.Strategy.Name, need)
		}
	}
	return nil
}

// check is Check, and whether the engine has what the strategy needs.
func (c Config) check() error {
	if err := c.Check(); err != nil {
		return err
	}
	if why := c.Strategy.Missing(onengine.Deps(c.Engine)); why != "" {
		return fmt.Errorf("strategy %s: %s", c.Strategy.Name, why)
	}
	return nil
}

func (x *Explorer) needs(n lockstrategy.Need) bool {
	return slices.Contains(x.config.Strategy.Needs, n)
}

// open makes one seat.
func (x *Explorer) open(owner int) error {
	s := seat{connector: &sqlConnector{gates: x.gates, database: x.database, owner: owner, conns: map[*sqlConn]struct{}{}}}
	var err error
	s.db, err = x.config.Engine.OpenWrapped(func(inner driver.Connector) driver.Connector {
		s.connector.Connector = inner
		return s.connector
	}, 2*x.config.Buyers)
	if err != nil {
		return err
	}
	for _, server := range x.servers {
		c, err := x.gates.gatedClient(server.admin, owner, server.name, server.keys)
		if err != nil {
			return err
		}
		if strings.HasPrefix(server.name, "redlock") {
			s.redlock = append(s.redlock, c)
		} else {
			s.redis = c
		}
	}
	x.seats = append(x.seats, s)
	return nil
}

func (x *Explorer) connector(buyer int) *sqlConnector {
	if x.config.Shared {
		return x.seats[0].connector
	}
	return x.seats[buyer-1].connector
}

// build makes the strategies of one run, one a buyer.
func (x *Explorer) build() (strategies []purchase.Strategy) {
	for i := range x.config.Buyers {
		switch {
		case !x.config.Shared:
			strategies = append(strategies, x.config.Strategy.New(x.deps(i+1)))
		case i == 0:
			strategies = append(strategies, x.config.Strategy.New(x.deps(0)))
		default:
			strategies = append(strategies, strategies[0])
		}
	}
	return strategies
}

// Close closes the buyers' Redis clients; their pools close with the engine.
func (x *Explorer) Close() error {
	x.timer.Stop()
	var errs []error
	for _, s := range x.servers {
		errs = append(errs, s.clear(context.Background()))
	}
	for _, s := range x.seats {
		if s.redis != nil {
			errs = append(errs, s.redis.Close())
		}
		for _, node := range s.redlock {
			errs = append(errs, node.Close())
		}
	}
	return errors.Join(errs...)
}
