package buyers

import "sync"

// Leavers are those of a crowd's buyers that wait for their answers, and may be told to hang
// up. Its methods may be called by several goroutines; the zero value has none.
type Leavers struct {
	mu      sync.Mutex
	waiting []*leaver // in the order in which their requests were out
}

type leaver struct{ hangUp func() bool } // false: its answer had begun, or it hung up before

// came adds one whose request is out. left is called when it has its answer, or none.
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

// HangUp has each nth of those who wait hang up, the first among them, and returns how many did
// before their answers began.
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
