package locktest

import (
	"sync"
	"time"
)

// beat is how often a pulse looks at the clock.
const beat = 5 * time.Millisecond

// A pulse adds up the time that this process was not given the CPU. A bound
// on a lock's time is lengthened by it, so that no verdict hangs on a machine
// that is busy with something else.
type pulse struct {
	mu      sync.Mutex
	stall   time.Duration // in all
	gap     time.Duration // the longest at once
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
		p.stall += late
		p.gap = max(p.gap, late)
	}
	p.last = now
}

// stalled is the time lost so far.
func (p *pulse) stalled() time.Duration {
	p.look()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stall
}

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
