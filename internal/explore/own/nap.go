package own

import "time"

// A nap is a sleep of the scheduler while it waits for the buyers. Its length affects no result.
type nap struct {
	over  chan struct{} // receives a value when a nap ends, even if it was interrupted
	start func(time.Duration)
	close func()
}

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

func plainNap() *nap {
	n := &nap{over: make(chan struct{}, 1)}
	timer := time.AfterFunc(time.Hour, n.end)
	n.start = func(d time.Duration) { timer.Reset(d) }
	n.close = func() { timer.Stop() }
	return n
}
