package own

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/standstill"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// A Runner implements schedule.Runner for strategies, on the servers of an engine. Only one goroutine may use it.
type Runner struct {
	spec     Spec
	gates    *gate.Gates
	seats    []*seat // connections with gates, which hold commands: one seat for each buyer, or one for all with Spec.Shared
	servers  servers
	stock    serverstate.Stock
	database serverstate.Database
	rest     *standstill.Goroutines
	endings  endings
	clock    clock
	nap      *nap

	severalAtOnce bool // a buyer may have several unanswered commands
	outlives      bool // a buyer's process may continue after Buy has returned
	stated        bool // the runner can compute states, so the search can compare them, see prepareStates

	firstID int64 // id of the next record at the start of a run; 0: runs always begin with the same id

	current atomic.Pointer[run]
}

// New opens the buyers' connections. The caller must call Close.
func New(ctx context.Context, s Spec) (*Runner, error) {
	x := &Runner{
		spec: s, nap: newNap(), gates: gate.New(s.Strategy.Scripts),
	}
	if slices.Contains(s.Events, schedule.Raise) {
		x.gates.InBuy = inBuy
	}
	beside, err := s.Engine.OpenWrapped(func(inner driver.Connector) driver.Connector { return inner }, 2)
	if err != nil {
		return nil, err
	}
	admin, err := beside.DB()
	if err != nil {
		return nil, err
	}
	x.database = serverstate.For(s.Engine.DB.Name(), admin)
	x.stock = serverstate.Stock{Admin: beside, Product: s.Product, Stock: s.Stock, Parts: s.Parts}
	if err := errors.Join(x.watchServers(), x.prepare(ctx)); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// Entries returns the functions that run a strategy's code in their own goroutine, for standstill.NewGoroutines.
func Entries() []any { return []any{(*run).buy, (*watchdogs).renew, (*Runner).start, stockRead.left} }

func (x *Runner) watchServers() (err error) {
	e := x.spec.Engine
	if e.Redis != nil {
		err = x.servers.watch("redis", e.Redis)
	}
	if slices.Contains(x.spec.Strategy.Needs, lockstrategy.NeedsRedlock) {
		x.severalAtOnce = true
		for i := range min(Nodes, len(e.Redlock)) {
			err = errors.Join(err, x.servers.watch(fmt.Sprintf("redlock-%d", i+1), e.Redlock[i]))
		}
	}
	return err
}

func (x *Runner) prepare(ctx context.Context) error {
	seats := x.spec.Buyers
	if x.spec.Shared {
		seats = 1
	}
	for i := range seats {
		owner := i + 1
		if x.spec.Shared {
			owner = 0
		}
		s, err := x.open(owner)
		if err != nil {
			return err
		}
		x.seats = append(x.seats, s)
	}
	if err := product.Put(x.spec.Engine.Admin.WithContext(ctx), x.spec.Product, x.spec.Stock); err != nil {
		return err
	}
	if err := x.database.Prepare(ctx, x.spec.Engine.Disposable); err != nil {
		return err
	}
	if err := x.prepareStates(ctx); err != nil {
		return err
	}
	probe := x.spec.Strategy.New(x.deps(0))
	x.rest = standstill.NewGoroutines(innermost(probe), Entries()...)
	_, worker := probe.(purchase.Worker)
	x.outlives = worker || x.spec.Shared
	x.severalAtOnce = x.severalAtOnce || x.outlives
	if lock, ok := probe.(purchase.Resetter); ok { // an earlier exploration may have left the lock locked
		if err := lock.Reset(ctx, x.spec.Product); err != nil {
			return err
		}
	}
	closeStrategy(probe)
	return nil
}

// prepareStates finds out whether the runner can compute states, so that the search can merge equal ones. On a database
// server, no other client may use the database, because each run must give its records the same ids.
func (x *Runner) prepareStates(ctx context.Context) (err error) {
	x.stated = !x.database.Blocks()
	if !x.stated && x.spec.Engine.Disposable && !x.spec.Full {
		x.stated, err = x.database.Stated(ctx)
	}
	if x.stated {
		x.stock.Recount, x.stock.Milliseconds = x.database.Recount(), x.database.Milliseconds()
	}
	return err
}

// innermost returns the strategy inside all wrappers. Package standstill recognizes the strategy's goroutines by the
// package of this type.
func innermost(s purchase.Strategy) purchase.Strategy {
	if outer, ok := s.(interface{ Around() purchase.Strategy }); ok {
		return innermost(outer.Around())
	}
	return s
}

func closeStrategy(s purchase.Strategy) {
	if c, ok := s.(io.Closer); ok {
		_ = c.Close()
	}
}

// Stated implements schedule.Runner.
func (x *Runner) Stated() bool { return x.stated }

// Run implements schedule.Runner.
func (x *Runner) Run(ctx context.Context, choose schedule.Chooser, observe bool) (e schedule.Ended, err error) {
	x.clock.begin()
	if err := x.stock.Restore(ctx); err != nil {
		return e, err
	}
	if err := x.servers.clear(ctx); err != nil {
		return e, err
	}
	if x.stated {
		if x.spec.leavesRows() {
			if err := x.database.Cleared(ctx); err != nil {
				return e, err
			}
		}
		if x.firstID, err = x.database.NextID(ctx); err != nil {
			return e, err
		}
	}
	var orders []purchase.Order
	for i := range x.spec.Buyers {
		orders = append(orders, x.spec.order(i+1))
	}
	r := x.start(ctx, orders, observe)
	r.conductor = conduct.New(r, events{r}.all(), x.spec.Events, limits(x.spec))
	return r.conductor.Run(ctx, choose)
}

func limits(s Spec) conduct.Limits {
	return conduct.Limits{Steps: schedule.MaxSteps, Events: s.MaxEvents, Pairs: true}
}

// oneKey is the Idempotency-Key of every purchase if Spec.OneKey is set.
const oneKey = "one-key"

func (s Spec) order(id int) purchase.Order {
	o := purchase.Order{Product: s.Product, Purchaser: buyerName(id), Amount: s.Units.Of(id)}
	if s.OneKey {
		o.IdempotencyKey = oneKey
	}
	return o
}

func buyerName(id int) string { return fmt.Sprintf("buyer-%d", id) }

// attach lets the run r decide when commands are released. If r is nil, every command passes.
func (x *Runner) attach(r *run) {
	x.current.Store(r)
	if r == nil {
		x.gates.Attach(nil)
	} else {
		x.gates.Attach(r.inbox)
	}
}

// start starts one buyer for each purchase. Package standstill finds the goroutines by the name of this method.
func (x *Runner) start(ctx context.Context, orders []purchase.Order, observe bool) *run {
	r := newRun(x, len(orders), observe)
	x.gates.PubSub.Begin()
	x.attach(r)
	strategies := x.build(len(orders))
	counters := x.counters(strategies)
	for i, o := range orders {
		ctx, cancel := context.WithCancelCause(gate.WithBuyer(ctx, i+1))
		b := &buyer{
			id: i + 1, name: o.Purchaser, order: o,
			seat: x.seatOf(i + 1), strategy: strategies[i], counter: counters[i], cancel: cancel,
			changes: map[string]int{}, asks: map[string]int{}, watches: map[string][]int{},
			views: map[*gate.Conn]view{},
		}
		r.buyers = append(r.buyers, b)
		r.outcome.Add(1)
		go r.buy(ctx, b) // with outcome.Go, the goroutine's first function would be another, and standstill would not find it
	}
	return r
}

// Close closes all connections of the explorer.
func (x *Runner) Close() error {
	x.nap.close()
	err := errors.Join(x.servers.clear(context.Background()), closePool(x.stock.Admin))
	for _, s := range x.seats {
		err = errors.Join(err, s.close())
	}
	return errors.Join(err, x.servers.close())
}
