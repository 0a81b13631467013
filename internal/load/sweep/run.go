package sweep

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/load/measure"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product/stock"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/web"
)

// Config configures a sweep, a measurement of strategies with rising numbers of clients.
type Config struct {
	Strategies func(*engine.Engine) []string // names of the strategies to measure on an engine
	Clients    []int                         // numbers of clients, rising
	Processes  int
	Shops      web.Config
	Rounds     int
	Round      time.Duration                    // length of a round; its first third does not count
	Progress   func(format string, args ...any) // called before each round
}

// Run measures every strategy once in each round, so that a slow phase of the machine affects all of them.
func (c Config) Run(ctx context.Context, on engine.Config) (_ *Result, err error) {
	r := &Result{Cores: runtime.NumCPU(), Processes: c.Processes, Round: c.Round, Clients: c.Clients, Started: time.Now()}
	e, err := engine.Open(ctx, on)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	missing := lockstrategy.AllMissing(onengine.Deps(e))
	strategies := slices.DeleteFunc(slices.Clone(c.Strategies(e)), func(name string) bool {
		why := missing[name]
		if why != "" {
			r.LeftOut = append(r.LeftOut, name+": "+why)
		}
		return why != ""
	})
	if len(strategies) == 0 {
		return nil, fmt.Errorf("nothing of this can run here: %s", r.LeftOut[0])
	}
	var shops trial.Storefront
	defer func() { err = errors.Join(err, shops.Close()) }()
	if err := shops.ServeChildren(ctx, e, c.Shops, c.Processes, nil); err != nil {
		return nil, err
	}
	r.Server, r.Database = e.Server, e.Database
	rounds := make([][]measure.Round, len(strategies)*len(c.Clients)) // rounds of each strategy and number of clients, grouped by strategy
	for round := range c.Rounds {
		for s, name := range strategies {
			if err := restock(ctx, e); err != nil {
				return nil, err
			}
			for n, clients := range c.Clients {
				c.Progress("round %d of %d: %s, %d clients", round+1, c.Rounds, name, clients)
				seen, err := measure.Load{
					URLs: shops.URLs, Strategy: name, Product: purchase.DefaultProduct, Buyers: clients,
					WarmUp: c.Round / 3, Duration: c.Round - c.Round/3,
				}.Run(ctx)
				if err != nil {
					return nil, fmt.Errorf("%s, %d clients: %w", name, clients, err)
				}
				at := s*len(c.Clients) + n
				rounds[at] = append(rounds[at], seen)
				r.Others += seen.Others / float64(c.Rounds*len(rounds))
			}
			if round < c.Rounds-1 {
				continue
			}
			if entry, _ := lockstrategy.ByName(name); entry.Leased {
				section, err := sectionOf(ctx, shops.URLs, name)
				if err != nil {
					return nil, err
				}
				r.Sections = append(r.Sections, section)
			}
		}
	}
	for i, all := range rounds {
		r.Points = append(r.Points, Of(strategies[i/len(c.Clients)], c.Clients[i%len(c.Clients)], all))
	}
	for _, entry := range lockstrategy.All() {
		if slices.Contains(strategies, entry.Name) && len(entry.Breaks(r.Database)) > 0 {
			r.Unsafe = append(r.Unsafe, entry.Name)
		}
	}
	r.Took = time.Since(r.Started)
	return r, nil
}

// restock prepares the servers for the next strategy, with a stock that never sells out. It deletes all locks,
// since a lock without a TTL may still be held. It resets the product's fence, the highest fencing token that
// was used, since the next strategy may start with a lower one.
func restock(ctx context.Context, e *engine.Engine) error {
	for _, locks := range append([]redis.UniversalClient{e.Redis}, e.Redlock...) {
		if err := locks.FlushDB(ctx).Err(); err != nil {
			return err
		}
	}
	admin := e.Admin.WithContext(ctx)
	if err := stock.ClearAll(admin); err != nil {
		return err
	}
	return admin.Exec("UPDATE product SET amount = 900000000, stocked = 900000000, fence = 0").Error
}
