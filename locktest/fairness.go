package locktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// spacing is the time between the requests of two waiters if the server cannot report its waiters. It is 50 ms,
// or less if eight of these times would exceed half a lease.
func (tr *trial) spacing() time.Duration {
	const most = 50 * time.Millisecond
	if tr.s.TTL > 0 {
		return min(most, tr.s.TTL/16)
	}
	return most
}

// fairness has two parts. First, eight waiters of two clients ask one after another and must get the lock in
// that order. Then eight contenders ask, and ask again as soon as they have unlocked, for at least 400 grants
// and half a second. None may get less than half of an equal share.
func fairness(ctx context.Context, tr *trial) Result {
	got, err := arrivals(ctx, tr, 8)
	if err != nil {
		return breaks("%v", err)
	}
	overtaken := !slices.IsSorted(got)
	if overtaken && tr.s.Fair && tr.s.Waiting == nil && tr.longest() > tr.spacing()/2 {
		return inconclusive("the machine stood still for %s while the waiters lined up", round(tr.longest()))
	}
	sh, err := closedLoop(ctx, tr, 8, 400, 500*time.Millisecond)
	if err != nil {
		return breaks("%v", err)
	}
	why := fmt.Sprintf("asked 0..7, had it %v; of %d grants the contenders had %d to %d, the clients %v; "+
		"wait %s (median), %s (longest), %.0f times the median",
		got, sh.total(), slices.Min(sh.contender), slices.Max(sh.contender), sh.client,
		round(sh.median), round(sh.longest), sh.ratio())
	r := Result{Verdict: Holds, Why: why, Figures: map[string]float64{
		"median_wait": sh.median.Seconds(), "longest_wait": sh.longest.Seconds(), "longest_by_median": sh.ratio(),
		"fewest_grants": float64(slices.Min(sh.contender)), "most_grants": float64(slices.Max(sh.contender)),
	}}
	if overtaken || 2*slices.Min(sh.contender) < sh.total()/len(sh.contender) {
		r.Verdict = Breaks
	}
	return r
}

// arrivals lets n waiters ask one after another while a holder has the lock, alternating between
// the clients. It returns them in the order in which they got the lock.
func arrivals(ctx context.Context, tr *trial, n int) ([]int, error) {
	first, err := tr.clients[0].Lock(ctx, tr.name)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		order  []int
		failed firstError
	)
	for i := range n {
		all.Go(func() {
			lease, err := tr.clients[i%len(tr.clients)].Lock(ctx, tr.name)
			if err != nil {
				failed.set(fmt.Errorf("waiter %d: %w", i, err))
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			if err := lease.Unlock(ctx); err != nil {
				failed.set(fmt.Errorf("unlock by waiter %d: %w", i, err))
			}
		})
		if err := tr.queued(ctx, i+1, tr.spacing()); err != nil {
			failed.set(err)
			break
		}
	}
	if err := first.Unlock(ctx); err != nil {
		failed.set(fmt.Errorf("unlock: %w", err))
	}
	all.Wait()
	return order, failed.get()
}

// shares holds the number of grants of each contender and of each client.
type shares struct {
	contender, client []int
	median, longest   time.Duration // median and maximum of the waits, including unfinished ones at the end
}

func (s shares) total() int {
	n := 0
	for _, grants := range s.contender {
		n += grants
	}
	return n
}

func (s shares) ratio() float64 { return float64(s.longest) / float64(max(s.median, 1)) }

// closedLoop lets n contenders ask repeatedly until there were enough grants in total and a minimum time
// (least) has passed, for at most 10 s. A lock in memory gives 400 grants in 2 ms. Without the minimum
// time, such a lock would seem to starve a contender that the scheduler stops for a millisecond.
func closedLoop(ctx context.Context, tr *trial, n int, grants int64, least time.Duration) (shares, error) {
	short, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var (
		all    sync.WaitGroup
		count  atomic.Int64
		failed firstError
		sh     = shares{contender: make([]int, n), client: make([]int, len(tr.clients))}
		waits  = make([][]time.Duration, n)
		start  = make(chan struct{})
		begun  time.Time // written before start is closed
	)
	enough := func(given int64) bool { return given >= grants && time.Since(begun) >= least }
	for i := range n {
		all.Go(func() {
			<-start
			for !enough(count.Load()) && short.Err() == nil {
				asked := time.Now()
				lease, err := tr.clients[i%len(tr.clients)].Lock(short, tr.name)
				waits[i] = append(waits[i], time.Since(asked))
				if err != nil {
					if short.Err() == nil {
						failed.set(fmt.Errorf("lock: %w", err))
						cancel()
					}
					return
				}
				sh.contender[i]++
				err = lease.Unlock(ctx)
				if enough(count.Add(1)) || err != nil {
					cancel()
				}
				if err != nil {
					failed.set(fmt.Errorf("unlock: %w", err))
				}
			}
		})
	}
	begun = time.Now()
	close(start)
	all.Wait()
	for i, grants := range sh.contender {
		sh.client[i%len(tr.clients)] += grants
	}
	sh.median, sh.longest = spread(slices.Concat(waits...))
	return sh, failed.get()
}
