// Package pulse measures how long this process was ready to run and did not get a processor. Tests that turn a
// time limit into a verdict subtract that time: on a busy machine, a slow shop is not stuck.
//
// A goroutine sleeps for the time Beat and compares the clock with the time at which it should have woken. The
// difference counts for any cause: a busy machine, a stopped process, a suspended virtual machine. The
// servers and shops of a test share the machine and the priority with this process, so they wait as well. If
// only a server gets no processor, the pulse does not show it.
//
// Linux's own measure of waiting (/proc/pressure/cpu) is no substitute. With one more busy process than
// processors it grows by nearly one second per second, although every purchase proceeds.
package pulse

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Beat is the interval at which a pulse reads the clock. A delay shorter than Beat does not count.
const Beat = 5 * time.Millisecond

// A Pulse records the delays of this process from Start to Stop. Its methods may be called by
// several goroutines. The methods of a nil Pulse report no delay.
type Pulse struct {
	mu      sync.Mutex
	delays  Delays
	last    time.Time
	stop    func()
	stopped chan struct{}
	all     sync.WaitGroup
}

// Start starts a pulse. The caller must call Stop.
func Start() *Pulse {
	p := &Pulse{last: time.Now(), stopped: make(chan struct{})}
	p.stop = sync.OnceFunc(func() { close(p.stopped) })
	p.all.Go(func() {
		ticker := time.NewTicker(Beat)
		defer ticker.Stop()
		for {
			select {
			case <-p.stopped:
				return
			case <-ticker.C:
				p.look()
			}
		}
	})
	return p
}

// Stop ends the pulse. The delays can still be read. A second call does nothing.
func (p *Pulse) Stop() {
	if p != nil {
		p.stop()
		p.all.Wait()
	}
}

func (p *Pulse) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if due := p.last.Add(Beat); now.Sub(due) > Beat {
		p.delays = append(p.delays, Delay{due, now})
	}
	p.last = now
}

// Delays returns the delays so far, in order of time.
func (p *Pulse) Delays() Delays {
	if p == nil {
		return nil
	}
	select {
	case <-p.stopped:
	default:
		p.look()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.delays)
}

// Since returns the time since `start` without the time in which this process got no processor. The pulse must
// have been started before `start`.
func (p *Pulse) Since(start time.Time) time.Duration {
	p.look()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.Sub(start) - p.delays.Within(start, p.last)
}

// WithTimeout returns a context that ends after d, not counting the time in which this process got no
// processor. So a server that has not answered by then is silent, and not only slow because the machine is
// busy. The context's cause is then context.DeadlineExceeded.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	start, alive := time.Now(), Start()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		defer alive.Stop()
		ticker := time.NewTicker(max(d/20, Beat))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if alive.Since(start) >= d {
					cancel(context.DeadlineExceeded)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// A Delay is an interval in which this process got no processor.
type Delay struct{ From, To time.Time }

// Delays are intervals in order of time that do not overlap.
type Delays []Delay

// Within returns the sum of the delays between two times. It is at least 0, and at most to - from.
func (d Delays) Within(from, to time.Time) (sum time.Duration) {
	first, _ := slices.BinarySearchFunc(d, from, func(one Delay, t time.Time) int { return one.To.Compare(t) })
	for _, one := range d[first:] {
		if !one.From.Before(to) {
			break
		}
		begin, end := one.From, one.To
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		sum += max(0, end.Sub(begin))
	}
	return sum
}

// Mostly describes the delays if they fill at least half of the time between the two times; otherwise it
// returns "". With such delays, even a healthy server may have had only half of a time limit.
func (d Delays) Mostly(from, to time.Time) string {
	if sum := d.Within(from, to); sum == 0 || 2*sum < to.Sub(from) {
		return ""
	}
	return d.Describe(from, to)
}

// Describe says for how much of the time between the two times this process got no processor.
func (d Delays) Describe(from, to time.Time) string {
	return fmt.Sprintf("this process got no processor for %.1f of %.1f s", d.Within(from, to).Seconds(), to.Sub(from).Seconds())
}

// Longest returns the longest delay, or 0.
func (d Delays) Longest() (longest time.Duration) {
	for _, one := range d {
		longest = max(longest, one.To.Sub(one.From))
	}
	return longest
}
