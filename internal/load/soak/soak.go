// Package soak keeps a shop under load for hours, in waves of several kinds. It audits the shop after
// each wave, and samples the resources of its processes.
//
//	seed -> Plan.Wave -> restock -> crowd (kill, restock) -> audit, Judge -> at rest -> next
//	                                every second: Use of each process, p99 -> Sample
//
// It starts no servers and knows no strategy. The caller passes the shops.
package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oversell/oversell/internal/load/rush"
)

// Shops controls the processes under load.
type Shops interface {
	URLs() []string // one for each process
	Kill(process int) error
	Start(ctx context.Context, process int) error // restarts a process after Kill
	Ended(process int) bool
}

// Config configures one soak.
type Config struct {
	Plan
	Duration, Length time.Duration // of the soak, and of one wave
	Shops            Shops
	Auditor          rush.Auditor
	Patience         time.Duration     // limit of one request, above the shop's own limit
	Progress         func(wave Wave)   // called when a wave begins
	Violated         func(waved Waved) // called at once for a wave with a violation
}

// samples is the maximum number of samples of a run.
const samples = 600

// Run soaks the shops until the time is over or ctx ends, and returns the result so far. An error
// reports a failure of the harness. Run then also returns the result so far.
func Run(ctx context.Context, c Config) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &run{
		Config: c, meter: &meter{}, lives: make([]int, c.Processes),
		result: &Result{Seed: c.Seed, Processes: c.Processes, Clients: c.Clients, Wave: c.Length, Asked: c.Duration, Kill: c.Kill, Started: time.Now()},
	}
	for _, s := range c.Strategies {
		r.result.Strategies = append(r.result.Strategies, s.Name)
	}
	sampling, stop := context.WithCancel(ctx)
	var sampler errgroup.Group
	sampler.Go(func() error { r.sample(sampling); return nil })
	err := r.waves(ctx)
	stop()
	_ = sampler.Wait()
	r.result.Samples = r.samples
	r.result.Took = time.Since(r.result.Started)
	r.result.Trends = Trends(r.result.Rests)
	r.result.Interrupted = ctx.Err() != nil
	if r.result.Interrupted {
		err = nil // ignores the answers to requests that hung up
	}
	return r.result, err
}

// run is a running soak.
type run struct {
	Config
	meter   *meter
	result  *Result
	samples []Sample // only for the sampler
	lives   []int    // number of restarts of each process
}

// waves plays the waves one after the other. It finishes a wave that has begun, so that the last one
// is as long as the others.
func (r *run) waves(ctx context.Context) error {
	for n := 1; n == 1 || time.Since(r.result.Started)+r.Length <= r.Duration; n++ {
		w := r.Wave(n)
		r.Progress(w)
		waved, err := r.wave(ctx, w)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err // the interrupted wave is not judged
		}
		waved.Began, waved.Ended = r.seconds(waved.began), r.seconds(time.Now())
		r.result.Waves = append(r.result.Waves, waved)
		if len(waved.Violations) > 0 {
			r.Violated(waved)
		}
		if err := r.rest(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) seconds(at time.Time) float64 { return at.Sub(r.result.Started).Seconds() }

// shelf returns the target of restocks.
func (r *run) shelf(process int) rush.Target {
	return rush.Target{BaseURL: r.Shops.URLs()[process]}
}

// wave plays one wave. Each strategy has one product, which is restocked for each wave. More products
// would make a shop that keeps data for each product look as if it leaked.
func (r *run) wave(ctx context.Context, w Wave) (Waved, error) {
	product := "soak-" + w.Strategy
	waved := Waved{Wave: w, began: time.Now()}
	if err := r.shelf(0).Restock(ctx, product, w.Stock); err != nil {
		waved, err = waved.broken(fmt.Errorf("restock before wave %d: %w", w.Number, err))
		if err == nil { // otherwise such waves would follow each other without a pause
			err = wait(ctx, r.Length)
		}
		return waved, err
	}
	c := &crowd{wave: w, shops: r.Shops, meter: r.meter}
	var meanwhile errgroup.Group
	meanwhile.Go(func() error {
		select {
		case <-time.After(r.Length / 2):
		case <-ctx.Done():
			return nil
		}
		switch {
		case w.kind.Restock:
			return c.restock(func() error { return r.shelf(w.Process).Restock(ctx, product, w.Stock) })
		case w.kind.Kill:
			return r.kill(ctx, w.Process)
		}
		return nil
	})
	c.keep(ctx, product, r.Length, r.Patience)
	err := meanwhile.Wait()
	waved.Answers, waved.Killed = c.answers, w.kind.Kill
	if err != nil {
		return waved.broken(fmt.Errorf("%s in wave %d: %w", w.Kind, w.Number, err))
	}
	audited, err := rush.Settle(ctx, r.Auditor, product, w.kind.Kill || c.answers.Unknown+c.answers.Unreached > 0)
	if err != nil {
		return waved, fmt.Errorf("audit after wave %d: %w", w.Number, err)
	}
	waved.Audited = audited
	waved.Violations, waved.Void = Judge(w, c.answers, audited)
	for process := range r.Processes {
		if r.Shops.Ended(process) {
			return waved, fmt.Errorf("shop process %d ended by itself in wave %d (%s, %s)", process, w.Number, w.Kind, w.Strategy)
		}
	}
	return waved, nil
}

// broken returns the wave with a violation if the shop answered a restock with an error although no
// server was unavailable. Otherwise it returns err.
func (w Waved) broken(err error) (Waved, error) {
	if errors.As(err, new(*rush.RestockError)) {
		w.Violations, err = []string{"failed: " + err.Error()}, nil
	}
	return w, err
}

// kill ends a process and starts its successor. It does so even if the run is interrupted, since the
// caller then stops all processes.
func (r *run) kill(ctx context.Context, process int) error {
	if err := r.Shops.Kill(process); err != nil {
		return err
	}
	select {
	case <-time.After(min(r.Length/10, time.Second)): // so that some buyers find no shop
	case <-ctx.Done():
	}
	r.lives[process]++
	return r.Shops.Start(context.WithoutCancel(ctx), process)
}

// rest samples each idle process: when two samples are equal, or after two seconds.
func (r *run) rest(ctx context.Context, w Wave) error {
	last := make([]Use, r.Processes)
	for deadline := time.Now().Add(2 * time.Second); ; {
		same, now := true, make([]Use, r.Processes)
		for process, url := range r.Shops.URLs() {
			var err error
			if now[process], err = useOf(ctx, url, 30*time.Second); err != nil {
				return errors.Join(ctx.Err(), fmt.Errorf("what process %d uses after wave %d: %w", process, w.Number, err))
			}
			same = same && now[process].Goroutines == last[process].Goroutines && now[process].Descriptors == last[process].Descriptors
		}
		if same || time.Now().After(deadline) {
			for process, use := range now {
				r.result.Rests = append(r.result.Rests, Rest{Wave: w.Number, Process: process, Life: r.lives[process], Use: use})
			}
			return nil
		}
		last = now
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// sample records the resources of each process, and the answers since the last sample.
func (r *run) sample(ctx context.Context) {
	every := max(time.Second, r.Duration/samples)
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		s := Sample{At: r.seconds(now), Seconds: now.Sub(last).Seconds()}
		var p99 time.Duration
		s.Sold, s.Refused, p99 = r.meter.read()
		s.P99MS = float64(p99.Microseconds()) / 1000
		last = now
		for _, url := range r.Shops.URLs() {
			use, _ := useOf(ctx, url, every) // a killed process uses nothing
			s.Processes = append(s.Processes, use)
		}
		if ctx.Err() == nil {
			r.samples = append(r.samples, s)
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Command returns the command that repeats the sequence of waves, without the engine flags.
func (r Result) Command() string {
	command := fmt.Sprintf("shop soak --seed %d --duration %s --wave %s --clients %d --processes %d --strategy %s",
		r.Seed, short(r.Asked), short(r.Wave), r.Clients, r.Processes, strings.Join(r.Strategies, ","))
	if !r.Kill {
		command += " --kill=false"
	}
	return command + r.Flags
}
