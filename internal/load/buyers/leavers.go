package buyers

import "sync"

// Leavers has the buyers that wait for an answer, and can have some of them hang up. Several
// goroutines may call its methods. The zero value has no buyers.
type Leavers struct {
	mu      sync.Mutex
	waiting []*leaver // in the order in which their requests were out
}

type leaver struct{ hangUp func() bool } // false: its answer had begun, or it hung up before

// came adds a buyer whose request is out. left removes it; call it when the request is over.
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

// HangUp has each nth waiting buyer hang up, beginning with the first, and returns how many did
// so before their answers began.
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
