package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/web"
)

// PointBuyers is the number of buyers at every point.
const PointBuyers = 32

// settings is a group of points that are measured on the same shops.
type settings struct {
	processes int
	delay     time.Duration
	products  []int
	records   int64
	each      bool // measure every strategy; otherwise one of each kind
}

// alone and both are values of settings.products. Most settings use one of them.
var alone, both = []int{sizing.AloneProducts}, []int{sizing.AloneProducts, sizing.SpreadProducts}

// calibration returns the settings that a prediction needs.
func calibration() []settings { return []settings{{processes: 1, products: both, each: true}} }

// grid returns the points of docs/reference/throughput.md. It varies one value at a time, and also
// the products, since they decide whether the row is the bottleneck.
func grid(nodes int, canFill bool) []settings {
	if nodes > 1 {
		return []settings{{processes: 1, products: both}, {processes: 3, products: both}}
	}
	all := append(calibration(),
		settings{processes: 1, products: []int{10, 1000}},
		settings{processes: 2, products: both},
		settings{processes: 4, products: both},
		settings{processes: sizing.CrowdedProcesses, products: both},
		settings{processes: 1, delay: time.Millisecond, products: both},
		settings{processes: 1, delay: 5 * time.Millisecond, products: both},
		settings{processes: 4, delay: time.Millisecond, products: alone},
	)
	if canFill { // must be last, since the records are never deleted
		all = append(all, settings{processes: 1, products: both, records: 10_000_000})
	}
	return all
}

// kinds returns one strategy for each kind of path: the one that keeps most promises.
func kinds(strategies []string) (some []string) {
	best := map[string]int{} // index in some, by path
	kept := func(name string) (n int) {
		e, _ := lockstrategy.ByName(name)
		for _, v := range e.Promise {
			if v == verdict.Holds {
				n++
			}
		}
		return n
	}
	for _, name := range strategies {
		e, _ := lockstrategy.ByName(name)
		way := fmt.Sprint(e.Path, e.Needs)
		if at, there := best[way]; !there {
			best[way], some = len(some), append(some, name)
		} else if kept(name) > kept(some[at]) {
			some[at] = name
		}
	}
	return some
}

// Config selects the points to measure.
type Config struct {
	Databases  []string // private servers; "" is the default one
	Strategies []string
	Grid       bool // every point of docs/reference/throughput.md; otherwise those that a prediction needs
	Rounds     int  // rounds of each point; the median counts
	Round      time.Duration
	Conns      int                              // database connections of each process
	Progress   func(format string, args ...any) // called before each round
}

// Points measures the points on private servers, which need Linux.
func (c Config) Points(ctx context.Context) (sizing.Measured, error) {
	m := sizing.Measured{When: time.Now().UTC().Format(time.DateOnly), Cores: float64(runtime.NumCPU())}
	for _, localDB := range c.Databases {
		if err := c.onDatabase(ctx, &m, localDB); err != nil {
			return m, err
		}
	}
	if others := m.Others(); others > quiet {
		m.Provisional = fmt.Sprintf("others used %.1f processors meanwhile", others)
	}
	return m, nil
}

// quiet is the maximum average number of processors that other programs may use during a final
// measurement.
const quiet = 0.2

// onDatabase adds the points of one database.
func (c Config) onDatabase(ctx context.Context, m *sizing.Measured, localDB string) (err error) {
	preset := lockstrategy.DefaultSettings()
	bed, err := OpenBed(ctx, engine.Config{
		Name: engine.Local, LocalDB: localDB, Wait: preset.Wait, Lease: preset.LeaseTTL, Conns: c.Conns,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	if m.Server == "" {
		m.Server = bed.Engine.Server
	}
	all := calibration()
	if c.Grid {
		all = grid(bed.nodes(), bed.canFill())
	}
	for len(all) > 0 {
		same := 1 // number of settings that can share the records, which are never deleted
		for same < len(all) && all[same].records == all[0].records {
			same++
		}
		if err := bed.fill(ctx, all[0].records); err != nil {
			return err
		}
		points, err := c.measurePoints(ctx, bed, localDB, all[:same])
		if err != nil {
			return err
		}
		m.Points, all = append(m.Points, points...), all[same:]
	}
	return nil
}

// A sample is a point with its rounds.
type sample struct {
	sizing.Point
	rounds []Round
}

// measurePoints measures every setting in each round, so that a slow phase of the machine affects all
// settings once.
func (c Config) measurePoints(ctx context.Context, bed *Bed, localDB string, all []settings) (points []sizing.Point, err error) {
	samples := make([][]sample, len(all))
	for round := range c.Rounds {
		for i, s := range all {
			show := func(p sizing.Point) {
				c.Progress("round %d of %d: %s, %s", round+1, c.Rounds, p.Strategy, p.Setting)
			}
			if samples[i], err = c.measureRound(ctx, bed, localDB, s, samples[i], show); err != nil {
				return nil, err
			}
		}
	}
	for _, s := range slices.Concat(samples...) {
		points = append(points, s.median())
	}
	return points, nil
}

// measureRound adds a round to the samples of a setting. The first round creates the samples.
func (c Config) measureRound(ctx context.Context, bed *Bed, localDB string, s settings, samples []sample, show func(sizing.Point)) (_ []sample, err error) {
	flags := web.Config{Settings: lockstrategy.DefaultSettings(), MaxInflight: 10 * PointBuyers}
	shops, err := bed.Serve(ctx, flags, s.processes, s.delay)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, shops.Close()) }()
	idle, err := shops.ask(ctx)
	if err != nil {
		return nil, err
	}
	strategies := c.Strategies
	if !s.each {
		strategies = kinds(strategies)
	}
	n := 0
	for _, name := range strategies {
		if bed.Missing[name] != "" {
			continue
		}
		if err := bed.Restock(ctx); err != nil {
			return nil, err
		}
		for _, products := range s.products {
			if n == len(samples) {
				samples = append(samples, sample{Point: sizing.Point{Strategy: name, Setting: sizing.Setting{
					Database: localDB, Nodes: bed.nodes(), Writers: bed.writers(), Processes: s.processes, Products: products,
					Buyers: PointBuyers, DelayMS: float64(s.delay.Milliseconds()), Records: bed.records,
				}}})
			}
			at := &samples[n]
			show(at.Point)
			r, err := c.load(shops, name, bed.Products(products), s.delay).Run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, at.Setting, err)
			}
			if s.delay == 0 {
				r.Servers = idle
			}
			at.rounds = append(at.rounds, r)
			n++
		}
	}
	return samples, nil
}

func (c Config) load(shops *Shops, strategy string, products []string, delay time.Duration) Load {
	l := Load{
		URLs: shops.URLs, Strategy: strategy, Products: products, Buyers: PointBuyers,
		WarmUp: c.Round / 3, Duration: c.Round - c.Round/3, CPU: true,
	}
	if delay > 0 {
		l.Ask = shops.ask // measured under load, since a busy proxy delays longer
		if len(products) == 1 {
			l.Duration *= 2 // since there are few sales
		}
	}
	return l
}

// median returns the point with the medians of its rounds.
func (s sample) median() sizing.Point {
	of := func(figure func(Round) float64) float64 { return rounded(Median(s.rounds, figure)) }
	p := s.Point
	for _, r := range s.rounds {
		p.Rounds = append(p.Rounds, rounded(r.PerSecond))
	}
	p.PerSecond = of(func(r Round) float64 { return r.PerSecond })
	p.Refused = of(func(r Round) float64 { return r.Refused })
	p.Others = of(func(r Round) float64 { return r.Others })
	p.CPU = sizing.CPU{
		Database: of(func(r Round) float64 { return r.CPU.Database }),
		Shop:     of(func(r Round) float64 { return r.CPU.Shop }),
		Locks:    of(func(r Round) float64 { return r.CPU.Locks }),
		Buyers:   of(func(r Round) float64 { return r.CPU.Buyers }),
	}
	p.Servers = sizing.Servers{
		StatementMS: of(func(r Round) float64 { return r.Servers.StatementMS }),
		CommitMS:    of(func(r Round) float64 { return r.Servers.CommitMS }),
		RedisMS:     of(func(r Round) float64 { return r.Servers.RedisMS }),
	}
	return p
}

// rounded rounds to three decimals.
func rounded(x float64) float64 { return float64(int64(x*1000+0.5)) / 1000 }
