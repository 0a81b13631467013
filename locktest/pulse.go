package locktest

import (
	"sync"
	"time"
)

// beat is how often a pulse looks at the clock.
const beat = 5 * time.Millisecond

// A pulse sees how long this process was not given the CPU at once. A bound on
// a lock's time is lengthened by it, so that no verdict hangs on a machine
// that is busy with something else.
type pulse struct {
	mu      sync.Mutex
	gap     time.Duration // the longest
	last    time.Time
	stopped chan struct{}
	all     sync.WaitGroup
}

func newPulse() *pulse {
	p := &pulse{last: time.Now(), stopped: make(chan struct{})}
	p.all.Go(func() {
		ticker := time.NewTicker(beat)
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

func (p *pulse) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if late := now.Sub(p.last) - beat; late > beat {
		p.gap = max(p.gap, late)
	}
	p.last = now
}

// late is how late an event may be for want of the CPU: once when it is due
// and once when it is seen.
func (p *pulse) late() time.Duration { return 2 * p.longest() }

// longest is the longest time lost at once.
func (p *pulse) longest() time.Duration {
	p.look()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gap
}

func (p *pulse) stop() {
	close(p.stopped)
	p.all.Wait()
}
