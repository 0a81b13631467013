package locktest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/load/quantile"
)

// A Load describes the load that Measure puts on one lock.
type Load struct {
	Contenders int           // total number, spread evenly over the processes; each asks again as soon as it has unlocked
	Processes  int           // number of processes, each with one Client; Contenders must be a multiple of it
	Section    time.Duration // how long a holder sleeps before it unlocks; 0 unlocks at once
	For        time.Duration // how long the contenders ask
}

// Figures are the results of a Load.
type Figures struct {
	Grants          int // how often a contender got the lock
	GrantsPerSecond float64
	// Handovers are the grants to a contender other than the previous holder. If a holder unlocks and takes
	// the lock again before any waiter, that is a grant, but no handover.
	Handovers          int
	HandoversPerSecond float64
	// Overlaps are the grants that began before the previous holder called Unlock, by the clock of
	// the machine. A correct lock has none, unless the clock is set during the run.
	Overlaps int
	// Waits are the times from the call of Lock to its return. An unfinished wait at the end of the run
	// counts with its length so far, so a contender that is never served is visible.
	MedianWait, P99Wait, LongestWait time.Duration
	// CommandsPerHandover is the number of commands that the server executed for each handover, including
	// renewals, polls and the commands of scripts. It is NaN if Subject.Commands is nil.
	CommandsPerHandover float64
	ByProcess           []int // grants of each process
}

// Measure puts the load on one lock, and counts the grants. If the subject has a Spec, Measure starts copies
// of this program as child processes, and the program must begin with a call of Child. Otherwise the
// contenders run in this process. Measure returns an error if a Lock or an Unlock fails.
func Measure(ctx context.Context, s Subject, l Load) (Figures, error) {
	if l.Processes < 1 || l.Contenders < l.Processes || l.Contenders%l.Processes != 0 || l.For <= 0 {
		return Figures{}, fmt.Errorf("%d contenders in %d processes for %s: want a multiple, for some time", l.Contenders, l.Processes, l.For)
	}
	if s.Spec == "" && l.Processes > 1 {
		return Figures{}, errors.New("more than one process needs Subject.Spec")
	}
	ctx, cancel := context.WithTimeout(ctx, l.For+2*tryTimeout)
	defer cancel()
	name := "locktest-measure-" + rand.Text()[:8]
	var crews []crew
	for i := range l.Processes {
		t := task{Spec: s.Spec, Name: name, Contenders: l.Contenders / l.Processes, Section: l.Section, For: l.For}
		start := startHere
		if s.Spec != "" {
			start = startChild
		}
		c, err := start(ctx, s, t)
		if err != nil {
			cancel()
			return Figures{}, errors.Join(fmt.Errorf("process %d: %w", i, err), collectAll(crews))
		}
		crews = append(crews, c)
	}
	before, err := s.commands(ctx)
	if err != nil {
		cancel()
		return Figures{}, errors.Join(err, collectAll(crews))
	}
	for _, c := range crews {
		c.begin()
	}
	var tallies []tally
	for i, c := range crews {
		got, collectErr := c.collect()
		if collectErr != nil {
			err = errors.Join(err, fmt.Errorf("process %d: %w", i, collectErr))
			cancel()
			continue
		}
		tallies = append(tallies, got)
	}
	if err != nil {
		return Figures{}, err
	}
	after, err := s.commands(ctx)
	if err != nil {
		return Figures{}, err
	}
	f := count(tallies)
	f.CommandsPerHandover = (after - before) / float64(f.Handovers)
	return f, nil
}

// count adds up the results of the processes. It orders their grants by the wall clock, which all
// processes of a machine share.
func count(tallies []tally) Figures {
	var (
		f      Figures
		waits  []time.Duration
		grants []grant
		took   time.Duration
	)
	for process, t := range tallies {
		f.ByProcess = append(f.ByProcess, len(t.Grants))
		waits = append(waits, t.Waits...)
		took = max(took, t.Took)
		for _, g := range t.Grants {
			g.Contender = g.Contender*len(tallies) + process
			grants = append(grants, g)
		}
	}
	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.Had, b.Had) })
	for i, g := range grants {
		if i > 0 && g.Contender != grants[i-1].Contender {
			f.Handovers++
		}
		if i > 0 && g.Had < grants[i-1].Left {
			f.Overlaps++
		}
	}
	f.Grants = len(grants)
	f.GrantsPerSecond = float64(f.Grants) / took.Seconds()
	f.HandoversPerSecond = float64(f.Handovers) / took.Seconds()
	slices.Sort(waits)
	f.MedianWait, f.P99Wait, f.LongestWait = quantile.Of(waits, 0.5), quantile.Of(waits, 0.99), quantile.Of(waits, 1)
	return f
}

// commands calls Subject.Commands, or returns NaN if that is nil.
func (s Subject) commands(ctx context.Context) (float64, error) {
	if s.Commands == nil {
		return math.NaN(), nil
	}
	n, err := s.Commands(ctx)
	return float64(n), err
}

// Median returns the median of each figure over several runs, so that a run on a busy machine has no effect.
// For Overlaps it returns the maximum, and for ByProcess nil. It panics if there are no runs.
func Median(runs []Figures) Figures {
	return Figures{
		Grants:              median(runs, func(f Figures) int { return f.Grants }),
		GrantsPerSecond:     median(runs, func(f Figures) float64 { return f.GrantsPerSecond }),
		Overlaps:            slices.MaxFunc(runs, func(a, b Figures) int { return cmp.Compare(a.Overlaps, b.Overlaps) }).Overlaps,
		Handovers:           median(runs, func(f Figures) int { return f.Handovers }),
		HandoversPerSecond:  median(runs, func(f Figures) float64 { return f.HandoversPerSecond }),
		MedianWait:          median(runs, func(f Figures) time.Duration { return f.MedianWait }),
		P99Wait:             median(runs, func(f Figures) time.Duration { return f.P99Wait }),
		LongestWait:         median(runs, func(f Figures) time.Duration { return f.LongestWait }),
		CommandsPerHandover: median(runs, func(f Figures) float64 { return f.CommandsPerHandover }),
	}
}

func median[N int | float64 | time.Duration](runs []Figures, of func(Figures) N) N {
	var values []N
	for _, f := range runs {
		values = append(values, of(f))
	}
	slices.Sort(values)
	return quantile.Of(values, 0.5)
}

type task struct {
	Spec, Name   string
	Contenders   int
	Section, For time.Duration
}

type tally struct {
	Grants []grant
	Took   time.Duration
	Waits  []time.Duration
}

// A grant is one time that a contender had the lock: from Lock's return to the
// call of Unlock, in ns since 1970.
type grant struct {
	Contender int
	Had, Left int64
}

// A crew is the contenders of one process. The method begin lets them ask for the lock; collect waits for
// their end.
type crew interface {
	begin()
	collect() (tally, error)
}

func collectAll(crews []crew) error {
	var errs []error
	for _, c := range crews {
		c.begin()
		_, err := c.collect()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// A here is a crew that runs in this process.
type here struct {
	start chan struct{}
	done  chan struct{}
	tally tally
	err   error
}

func startHere(ctx context.Context, s Subject, t task) (crew, error) {
	c, err := ready(ctx, s, t)
	if err != nil {
		return nil, err
	}
	h := &here{start: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(h.done)
		select {
		case <-h.start:
			h.tally, h.err = contend(ctx, c, t)
		case <-ctx.Done():
			h.err = ctx.Err()
		}
		h.err = errors.Join(h.err, c.Close())
	}()
	return h, nil
}

func (h *here) begin() { close(h.start) }

func (h *here) collect() (tally, error) {
	<-h.done
	return h.tally, h.err
}

// ready connects a client. It takes another lock once, so that connections and scripts exist when the
// measurement starts.
func ready(ctx context.Context, s Subject, t task) (Client, error) {
	c, err := s.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	lease, err := c.Lock(ctx, t.Name+"-"+rand.Text()[:8])
	if err == nil {
		err = lease.Unlock(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// contend lets the task's contenders ask until its time is over.
func contend(ctx context.Context, c Client, t task) (tally, error) {
	// No deadline here: some locks would shorten their lease to the deadline.
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(t.For, cancel)
	defer timer.Stop()
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		sum    tally
		failed firstError
		begin  = time.Now()
	)
	for i := range t.Contenders {
		all.Go(func() {
			grants, waits, err := contender(ctx, short, c, t, i)
			if err != nil {
				failed.set(err)
				cancel()
			}
			mu.Lock()
			defer mu.Unlock()
			sum.Grants = append(sum.Grants, grants...)
			sum.Waits = append(sum.Waits, waits...)
		})
	}
	<-short.Done()
	sum.Took = time.Since(begin)
	all.Wait()
	return sum, failed.get()
}

// contender asks for the lock again and again until the context `short` ends. If it holds the lock then, it
// gives it back under ctx.
func contender(ctx, short context.Context, c Client, t task, id int) (grants []grant, waits []time.Duration, err error) {
	for short.Err() == nil {
		asked := time.Now()
		lease, err := c.Lock(short, t.Name)
		had := time.Now()
		waits = append(waits, had.Sub(asked))
		if err != nil {
			if short.Err() == nil {
				return grants, waits, fmt.Errorf("lock: %w", err)
			}
			break
		}
		if t.Section > 0 {
			time.Sleep(t.Section)
		}
		ended := short.Err() != nil
		if !ended { // after the end of the run, the error is expected: the lease may have ended with the context of its Lock
			grants = append(grants, grant{Contender: id, Had: had.UnixNano(), Left: time.Now().UnixNano()})
		}
		if err := lease.Unlock(ctx); err != nil && !ended {
			return grants, waits, fmt.Errorf("unlock: %w", err)
		}
	}
	return grants, waits, nil
}
