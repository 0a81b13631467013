package locktest

import (
	"sync"
	"time"
)

// beat is how often a pulse looks at the clock.
const beat = 5 * time.Millisecond

// A pulse measures how long this process did not get the CPU. The limits on a lock's time are
// extended by that, so that no verdict depends on how busy the machine is.
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

// late returns how late an event may be because the process had no CPU: once when it is due and
// once when it is seen.
func (p *pulse) late() time.Duration { return 2 * p.longest() }

// longest returns the longest time without the CPU.
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
