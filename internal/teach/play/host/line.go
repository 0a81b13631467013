package host

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// A line is a queue for searches. Half of the processors may search at once, so that a click in
// another game is still answered quickly.
type line struct {
	mu      sync.Mutex
	inside  int
	waiting []*place
}

// A place is a place in the queue.
type place struct {
	turn chan struct{} // closed when its turn has come
	tell func(place int)
}

// enter waits for a turn. It calls tell with the place in the queue whenever it changes: 1 is the
// next one. Call leave afterwards.
func (l *line) enter(ctx context.Context, tell func(place int)) (leave func(), err error) {
	p := l.queue(tell)
	select {
	case <-p.turn:
		return l.leave, nil
	case <-ctx.Done():
		l.giveUp(p)
		return nil, context.Cause(ctx)
	}
}

// queue grants a turn at once, or returns a place.
func (l *line) queue(tell func(place int)) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &place{make(chan struct{}), tell}
	if l.inside < max(1, runtime.NumCPU()/2) {
		l.inside++
		close(p.turn)
		return p
	}
	l.waiting = append(l.waiting, p)
	p.tell(len(l.waiting))
	return p
}

// leave passes the turn to the next one.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.inside--
		return
	}
	close(l.waiting[0].turn)
	l.drop(0)
}

// giveUp removes a place from the queue, or passes on a turn that was granted meanwhile.
func (l *line) giveUp(p *place) {
	l.mu.Lock()
	i := slices.Index(l.waiting, p)
	if i >= 0 {
		l.drop(i)
	}
	l.mu.Unlock()
	if i < 0 {
		l.leave()
	}
}

// drop removes place i and tells the ones behind it. The caller must hold l.mu.
func (l *line) drop(i int) {
	l.waiting = slices.Delete(l.waiting, i, i+1)
	for ; i < len(l.waiting); i++ {
		l.waiting[i].tell(i + 1)
	}
}
