package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/load/sizing/measure"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/web"
)

// sizeBuyers are those of every measured point.
const sizeBuyers = 32

// settings are measured on the same shops.
type settings struct {
	processes int
	delay     time.Duration
	products  []int
	records   int64
	each      bool // every strategy; else one of each kind
}

// Products of most settings.
var alone, both = []int{sizing.AloneProducts}, []int{sizing.AloneProducts, sizing.SpreadProducts}

// calibration are the settings that a prediction needs.
func calibration() []settings { return []settings{{processes: 1, products: both, each: true}} }

// grid are the points of docs/scale.md: one thing is varied at a time, and the products
// beside it, since they decide whether it is the row that gives way.
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
	if canFill { // the last one: what is filled stays
		all = append(all, settings{processes: 1, products: both, records: 10_000_000})
	}
	return all
}

// kinds are one strategy of each way to sell, the one that keeps most promises.
func kinds(strategies []string) (some []string) {
	best := map[string]int{} // by way: its place in some
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

// measured writes the points to a file.
func (o *sizeOptions) measured(c *cobra.Command) error {
	path := o.calibrate + o.measure // one of them is ""
	if o.calibrate != "" && !c.Flags().Changed("rounds") {
		o.rounds = 1
	}
	// Found out now and not after twenty minutes.
	file, err := os.CreateTemp(filepath.Dir(path), ".size-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	m := sizing.Measured{When: time.Now().UTC().Format(time.DateOnly), Cores: float64(runtime.NumCPU())}
	progress := newProgress(c.ErrOrStderr())
	for _, localDB := range o.databases {
		err := o.onDatabase(c.Context(), &m, localDB, progress)
		progress.clear()
		if err != nil {
			return err
		}
	}
	if others := others(m.Points); others > quiet {
		m.Provisional = fmt.Sprintf("others used %.1f processors meanwhile", others)
		fmt.Fprintf(c.ErrOrStderr(), "shop: warning: %s; measure anew when the machine does nothing else\n", m.Provisional)
	}
	text, err := m.File(path)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%d points in %s; shop size --points %s predicts from them\n", len(m.Points), path, path)
	return err
}

// quiet is the most that others may use of the processors, on average, beside points that
// count.
const quiet = 0.2

func others(points []sizing.Point) (mean float64) {
	for _, p := range points {
		mean += p.Others / float64(len(points))
	}
	return mean
}

// onDatabase adds the points of one database.
func (o *sizeOptions) onDatabase(ctx context.Context, m *sizing.Measured, localDB string, progress *progress) (err error) {
	preset := lockstrategy.DefaultSettings()
	bed, err := openSizeBed(ctx, engine.Config{
		Name: engine.Local, LocalDB: localDB, Wait: preset.Wait, Lease: preset.LeaseTTL, Conns: defaultConns,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.close()) }()
	if m.Server == "" {
		m.Server = bed.engine.Server
	}
	all := calibration()
	if o.measure != "" {
		all = grid(bed.nodes(), bed.canFill())
	}
	for len(all) > 0 {
		same := 1 // settings with as many records: what is filled stays
		for same < len(all) && all[same].records == all[0].records {
			same++
		}
		if err := bed.fill(ctx, all[0].records); err != nil {
			return err
		}
		points, err := o.measurePoints(ctx, bed, localDB, all[:same], progress)
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
	rounds []measure.Round
}

// measurePoints measures every setting round by round, so that a machine that is slow for a
// while is slow to all, and once only.
func (o *sizeOptions) measurePoints(ctx context.Context, bed *sizeBed, localDB string, all []settings, progress *progress) (points []sizing.Point, err error) {
	samples := make([][]sample, len(all))
	for round := range o.rounds {
		for i, s := range all {
			show := func(p sizing.Point) {
				progress.show("round %d of %d: %s, %s", round+1, o.rounds, p.Strategy, p.Setting)
			}
			if samples[i], err = o.measureRound(ctx, bed, localDB, s, samples[i], show); err != nil {
				return nil, err
			}
		}
	}
	for _, s := range slices.Concat(samples...) {
		points = append(points, s.median())
	}
	return points, nil
}

// measureRound adds a round to the samples of a setting, and makes them in the first.
func (o *sizeOptions) measureRound(ctx context.Context, bed *sizeBed, localDB string, s settings, samples []sample, show func(sizing.Point)) (_ []sample, err error) {
	flags := web.Config{Settings: lockstrategy.DefaultSettings(), MaxInflight: 10 * sizeBuyers}
	shops, err := bed.serve(ctx, flags, s.processes, s.delay)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, shops.Close()) }()
	idle, err := shops.ask(ctx)
	if err != nil {
		return nil, err
	}
	strategies := o.strategies
	if !s.each {
		strategies = kinds(strategies)
	}
	n := 0
	for _, name := range strategies {
		if bed.missing[name] != "" {
			continue
		}
		if err := bed.restock(ctx); err != nil {
			return nil, err
		}
		for _, products := range s.products {
			if n == len(samples) {
				samples = append(samples, sample{Point: sizing.Point{Strategy: name, Setting: sizing.Setting{
					Database: localDB, Nodes: bed.nodes(), Writers: bed.writers(), Processes: s.processes, Products: products,
					Buyers: sizeBuyers, DelayMS: float64(s.delay.Milliseconds()), Records: bed.records,
				}}})
			}
			at := &samples[n]
			show(at.Point)
			r, err := o.load(shops, name, bed.products(products), s.delay).Run(ctx)
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

func (o *sizeOptions) load(shops *sizeShops, strategy string, products []string, delay time.Duration) measure.Load {
	l := measure.Load{
		URLs: shops.URLs, Strategy: strategy, Products: products, Buyers: sizeBuyers,
		WarmUp: o.round / 3, Duration: o.round - o.round/3, CPU: true,
	}
	if delay > 0 {
		l.Ask = shops.ask // a proxy's timers are as exact as it is busy: asked beside the buyers
		if len(products) == 1 {
			l.Duration *= 2 // few sales are made
		}
	}
	return l
}

// median is the point with what its rounds showed.
func (s sample) median() sizing.Point {
	of := func(figure func(measure.Round) float64) float64 { return rounded(measure.Median(s.rounds, figure)) }
	p := s.Point
	for _, r := range s.rounds {
		p.Rounds = append(p.Rounds, rounded(r.PerSecond))
	}
	p.PerSecond = of(func(r measure.Round) float64 { return r.PerSecond })
	p.Refused = of(func(r measure.Round) float64 { return r.Refused })
	p.Others = of(func(r measure.Round) float64 { return r.Others })
	p.CPU = sizing.CPU{
		Database: of(func(r measure.Round) float64 { return r.CPU.Database }),
		Shop:     of(func(r measure.Round) float64 { return r.CPU.Shop }),
		Locks:    of(func(r measure.Round) float64 { return r.CPU.Locks }),
		Buyers:   of(func(r measure.Round) float64 { return r.CPU.Buyers }),
	}
	p.Servers = sizing.Servers{
		StatementMS: of(func(r measure.Round) float64 { return r.Servers.StatementMS }),
		CommitMS:    of(func(r measure.Round) float64 { return r.Servers.CommitMS }),
		RedisMS:     of(func(r measure.Round) float64 { return r.Servers.RedisMS }),
	}
	return p
}

// rounded keeps three decimals: more of them say nothing.
func rounded(x float64) float64 { return float64(int64(x*1000+0.5)) / 1000 }
