package own

import "time"

// A nap is how long the scheduler sleeps until it looks again. It decides nothing.
type nap struct {
	over  chan struct{} // it has ended; one that was broken off may still say so
	start func(time.Duration)
	close func()
}

// begin begins one.
func (n *nap) begin(d time.Duration) {
	select {
	case <-n.over:
	default:
	}
	n.start(d)
}

func (n *nap) end() {
	select {
	case n.over <- struct{}{}:
	default:
	}
}

// plainNap is one by the runtime's timer.
func plainNap() *nap {
	n := &nap{over: make(chan struct{}, 1)}
	timer := time.AfterFunc(time.Hour, n.end)
	n.start = func(d time.Duration) { timer.Reset(d) }
	n.close = func() { timer.Stop() }
	return n
}
