package buyers

import "sync"

// Leavers tracks the buyers that wait for an answer, and can make some of them hang up. Its
// methods are safe for concurrent use. The zero value has no buyers.
type Leavers struct {
	mu      sync.Mutex
	waiting []*leaver // in the order in which their requests were sent
}

type leaver struct{ hangUp func() bool } // returns false if the answer had begun or the buyer hung up before

// came adds a buyer whose request was sent. Call left to remove it when the request is over.
func (l *Leavers) came(hangUp func() bool) (left func()) {
	if l == nil {
		return func() {}
	}
	one := &leaver{hangUp}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, one)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for i, other := range l.waiting {
			if other == one {
				l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
				return
			}
		}
	}
}

// HangUp makes every nth waiting buyer hang up, beginning with the first. It returns the number
// of buyers that hung up before their answers began.
func (l *Leavers) HangUp(nth int) (left int) {
	l.mu.Lock()
	var leave []*leaver
	for i := 0; i < len(l.waiting); i += nth {
		leave = append(leave, l.waiting[i])
	}
	l.mu.Unlock()
	for _, one := range leave {
		if one.hangUp() {
			left++
		}
	}
	return left
}
