package host

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

// A searchQueue lets at most half as many searches run at once as there are processors. So the shop still
// answers clicks in other games quickly.
type searchQueue struct {
	mu      sync.Mutex
	inside  int
	waiting []*place
}

// A place is one search in the queue.
type place struct {
	turn chan struct{} // closed when the search may run
	tell func(place int)
}

// enter waits until the search may run. Whenever its place in the queue changes, it calls the function
// `tell`; place 1 is the next one. The caller must call leave after the search.
func (l *searchQueue) enter(ctx context.Context, tell func(place int)) (leave func(), err error) {
	p := l.queue(tell)
	select {
	case <-p.turn:
		return l.leave, nil
	case <-ctx.Done():
		l.giveUp(p)
		return nil, context.Cause(ctx)
	}
}

// queue adds a search. If few enough searches are running, the new one may run at once.
func (l *searchQueue) queue(tell func(place int)) *place {
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

// leave ends a search and lets the next one run.
func (l *searchQueue) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.inside--
		return
	}
	close(l.waiting[0].turn)
	l.drop(0)
}

// giveUp removes a search from the queue. If it may run already, giveUp lets the next search run.
func (l *searchQueue) giveUp(p *place) {
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

// drop removes search i and tells the searches behind it. The caller must hold l.mu.
func (l *searchQueue) drop(i int) {
	l.waiting = slices.Delete(l.waiting, i, i+1)
	for ; i < len(l.waiting); i++ {
		l.waiting[i].tell(i + 1)
	}
}
