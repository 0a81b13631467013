package sweep

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/load/sizing/measure"
	"github.com/oversell/oversell/internal/web"
)

// Config configures a sweep.
type Config struct {
	Strategies func(*engine.Engine) []string // names of the strategies to measure on an engine
	Clients    []int                         // rising
	Processes  int
	Shops      web.Config
	Rounds     int
	Round      time.Duration                    // the first third is not counted
	Progress   func(format string, args ...any) // called before each round
}

// Run measures every strategy in each round, so that a slow phase of the machine affects all of
// them.
func (c Config) Run(ctx context.Context, on engine.Config) (_ *Result, err error) {
	r := &Result{Cores: runtime.NumCPU(), Processes: c.Processes, Round: c.Round, Clients: c.Clients, Started: time.Now()}
	bed, err := measure.OpenBed(ctx, on)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	strategies := slices.DeleteFunc(slices.Clone(c.Strategies(bed.Engine)), func(name string) bool {
		why := bed.Missing[name]
		if why != "" {
			r.LeftOut = append(r.LeftOut, name+": "+why)
		}
		return why != ""
	})
	if len(strategies) == 0 {
		return nil, fmt.Errorf("nothing of this can run here: %s", r.LeftOut[0])
	}
	shops, err := bed.Serve(ctx, c.Shops, c.Processes, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, shops.Close()) }()
	r.Server, r.Database = bed.Engine.Server, bed.Engine.Database
	rounds := make([][]measure.Round, len(strategies)*len(c.Clients)) // strategy by strategy
	for round := range c.Rounds {
		for s, name := range strategies {
			if err := bed.Restock(ctx); err != nil {
				return nil, err
			}
			for n, clients := range c.Clients {
				c.Progress("round %d of %d: %s, %d clients", round+1, c.Rounds, name, clients)
				seen, err := measure.Load{
					URLs: shops.URLs, Strategy: name, Products: bed.Products(1), Buyers: clients,
					WarmUp: c.Round / 3, Duration: c.Round - c.Round/3, CPU: runtime.GOOS == "linux",
				}.Run(ctx)
				if err != nil {
					return nil, fmt.Errorf("%s, %d clients: %w", name, clients, err)
				}
				at := s*len(c.Clients) + n
				rounds[at] = append(rounds[at], seen)
				r.Others += seen.Others / float64(c.Rounds*len(rounds))
			}
		}
	}
	for i, all := range rounds {
		r.Points = append(r.Points, Of(strategies[i/len(c.Clients)], c.Clients[i%len(c.Clients)], all))
	}
	r.Took = time.Since(r.Started)
	return r, nil
}
