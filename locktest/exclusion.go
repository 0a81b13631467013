package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/load/quantile"
)

// exclusion lets 24 contenders of 3 clients each add one, four times, to a counter. The counter loses updates
// if two contenders hold the lock at once.
func exclusion(ctx context.Context, tr *trial) Result {
	const each, rounds = 8, 4
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		all     sync.WaitGroup
		start   = make(chan struct{})
		counter raceCounter
		failed  firstError
	)
	for i := range processes * each {
		all.Go(func() {
			<-start
			for range rounds {
				if err := counter.visit(ctx, tr.clients[i%processes], tr.name); err != nil {
					failed.set(err)
					cancel()
					return
				}
			}
		})
	}
	close(start)
	all.Wait()
	const want = processes * each * rounds
	shows, most, met := counter.shows.Load(), counter.most.Load(), counter.met.Load()
	switch {
	case most > 1:
		return breaks("%d holders at once; the counter shows %d of %d", most, shows, want)
	case errors.Is(failed.get(), context.DeadlineExceeded): // waiters that are not woken are a matter of the check HandOver
		return inconclusive("%d of %d grants, one at a time, when the time was over", shows, want)
	case failed.get() != nil:
		return breaks("%v", failed.get())
	case shows != want:
		return breaks("the counter shows %d of %d, though no two were seen inside", shows, want)
	case met < want/2:
		return inconclusive("only %d of %d grants had anybody waiting", met, want)
	}
	return holds("%d grants to %d contenders of %d clients, one at a time; the counter is right", want, processes*each, processes)
}

// A raceCounter is a counter in this process that is deliberately not atomic: a contender reads it, and
// writes it some time later.
type raceCounter struct {
	shows  atomic.Int64
	inside atomic.Int64
	most   atomic.Int64 // maximum of inside
	asking atomic.Int64
	met    atomic.Int64 // grants after a wait
}

func (r *raceCounter) visit(ctx context.Context, c Client, name string) error {
	r.asking.Add(1)
	lease, err := c.Lock(ctx, name)
	r.asking.Add(-1)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	raise(&r.most, r.inside.Add(1))
	was := r.shows.Load()
	if r.asking.Load() > 0 {
		r.met.Add(1)
	}
	time.Sleep(200 * time.Microsecond)
	r.shows.Store(was + 1)
	r.inside.Add(-1)
	if err := lease.Unlock(ctx); err != nil {
		return fmt.Errorf("unlock of a lock that is held: %w", err)
	}
	return nil
}

// handOver lets 24 contenders of 3 clients wait while a holder has the lock. After its Unlock, each of them
// must get the lock. The reported latency is from the call of Unlock to the return of the next Lock.
func handOver(ctx context.Context, tr *trial) Result {
	const contenders = 24
	first, err := tr.clients[0].Lock(ctx, tr.name)
	if err != nil {
		return breaks("lock: %v", err)
	}
	var (
		mu      sync.Mutex
		freed   time.Time
		delays  []time.Duration
		failed  firstError
		all     sync.WaitGroup
		unlock  = func(l Lease) error { mu.Lock(); freed = time.Now(); mu.Unlock(); return l.Unlock(ctx) }
		entered = func() { mu.Lock(); delays = append(delays, time.Since(freed)); mu.Unlock() }
	)
	for i := range contenders {
		all.Go(func() {
			lease, err := tr.clients[i%processes].Lock(ctx, tr.name)
			if err != nil {
				failed.set(fmt.Errorf("a waiter: %w", err))
				return
			}
			entered()
			if err := unlock(lease); err != nil {
				failed.set(fmt.Errorf("unlock: %w", err))
			}
		})
	}
	err = tr.queued(ctx, contenders, 20*time.Millisecond)
	if err = cmp.Or(err, unlock(first)); err != nil {
		failed.set(err)
	}
	all.Wait()
	if len(delays) < contenders {
		return breaks("%d of %d waiters got the lock within %s: %v", len(delays), contenders, tryTimeout, failed.get())
	}
	if err := failed.get(); err != nil {
		return breaks("%v", err)
	}
	median, longest := spread(delays)
	r := holds("all %d waiters had it; a hand-over took %s (median) to %s", contenders, round(median), round(longest))
	r.Figures = map[string]float64{"median_handover": median.Seconds(), "longest_handover": longest.Seconds()}
	return r
}

// spread returns the median and the maximum of the durations; 0 and 0 if there are none.
func spread(d []time.Duration) (median, longest time.Duration) {
	d = slices.Sorted(slices.Values(d))
	return quantile.Of(d, 0.5), quantile.Of(d, 1)
}

// round keeps about three digits of a duration for a report.
func round(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

func raise(v *atomic.Int64, n int64) {
	for {
		old := v.Load()
		if n <= old || v.CompareAndSwap(old, n) {
			return
		}
	}
}

type firstError struct {
	mu  sync.Mutex
	err error
}

func (f *firstError) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
