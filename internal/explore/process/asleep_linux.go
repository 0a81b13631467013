package process

import "slices"

// Refresh searches again for all processes and threads of the program. If it returns an error, Asleep returns
// false until the next successful Refresh.
func (p *Program) Refresh() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tree.walk()
}

// Asleep reports whether, at one moment during the call, every thread of the program slept and all of its output was
// read. A result of true is certain. Asleep checks a thread twice if it may have run since the last call, otherwise
// once. It also returns false if threads cannot be read; Refresh returns the reason.
func (p *Program) Asleep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tree.still = p.tree.asleep(func() bool {
		return p.log == nil || !p.log.unread() // a full pipe empties without any action of the program
	})
	return p.tree.still
}

// maxRounds is the maximum number of searches for threads that new threads have started. A program that starts
// more generations of threads during one call is not asleep.
const maxRounds = 8

// asleep reports whether all threads slept during a call of `moment`. Each thread was blocked before that call, and
// has neither run nor been woken since.
func (t *tree) asleep(moment func() bool) bool {
	if !t.whole {
		if err := t.walk(); err != nil || !t.whole {
			return false
		}
	}
	for round := 0; ; round++ {
		found, ok := t.first()
		if !ok || round == maxRounds {
			return false
		}
		if !found {
			break
		}
	}
	return moment() && t.second()
}

// first checks the threads that have run since they were last seen asleep, and finds the threads that they have
// started. It also reports whether it found any.
func (t *tree) first() (found, ok bool) {
	var ran []*thread
	for i, th := range t.order {
		if th.slept {
			continue
		}
		if !t.sleeps(th) {
			t.early(i)
			return false, false
		}
		ran = append(ran, th)
	}
	if len(ran) == 0 {
		return false, true
	}
	// Each of these threads was blocked before this search for its children. If the thread has run since, the second
	// check detects that.
	met := map[int]bool{}
	for _, th := range ran {
		if met[th.pid] {
			continue
		}
		met[th.pid] = true
		if t.procs[th.pid].complete() {
			continue
		}
		more, err := t.meet(th.pid)
		if err != nil || !t.whole {
			return false, false
		}
		found = found || more
	}
	more, err := t.born(ran)
	if err != nil {
		t.whole = false
		return false, false
	}
	found = found || more
	for _, th := range ran {
		th.slept = true
	}
	return found, true
}

// sleeps reports whether a thread sleeps. It reads the thread's switches first: if the thread runs later, their
// count changes.
func (t *tree) sleeps(th *thread) bool {
	ran, err := th.count()
	if err != nil {
		t.whole = false
		return false
	}
	th.ran = ran
	if !th.ended {
		blocked, err := th.blocked()
		if err != nil {
			t.whole = false
		}
		if err != nil || !blocked {
			return false
		}
	}
	resting, err := th.resting()
	if err != nil {
		t.whole = false
	}
	return err == nil && resting
}

// second reports whether no thread has run or been woken since the method `first` was called.
func (t *tree) second() bool {
	for i, th := range t.order {
		asleep, err := true, error(nil)
		if !th.ended { // an ended thread must still exist: if its parent has reaped it, the parent has run
			asleep, err = th.asleep()
		}
		if err == nil && asleep {
			var ran uint64
			if ran, err = th.count(); err == nil && ran == th.ran {
				continue
			}
		}
		if err != nil {
			t.whole = false // the thread has ended, so another process has its children
		}
		th.slept = false
		t.early(i)
		return false
	}
	return true
}

// early moves a thread to the front of the order, since a running thread usually continues to run.
func (t *tree) early(i int) {
	th := t.order[i]
	copy(t.order[1:i+1], t.order[:i])
	t.order[0] = th
}

// born searches for new children of the threads that have run. The children of an ended thread move to the first
// thread of a process above it (prctl(2), PR_SET_CHILD_SUBREAPER), so the root comes last. A list can omit a child
// only if another child in it has ended (fs/proc/array.c). The method `second` detects that end.
func (t *tree) born(ran []*thread) (found bool, err error) {
	var children []int
	if t.scan {
		if children, err = scanned(t.root); err != nil {
			return false, err
		}
	} else {
		files := make([]*file, 0, len(ran)+len(t.procs)+1)
		for _, th := range ran {
			if th.tid != th.pid {
				files = append(files, th.children)
			}
		}
		for _, p := range t.procs {
			files = append(files, p.leader)
		}
		if t.below {
			files = append(files, t.leader)
		}
		for _, f := range files {
			if f == nil {
				continue
			}
			var buf [4096]byte
			b, err := f.read(buf[:])
			if gone(err) {
				t.whole = false
				continue
			}
			if err != nil {
				return false, err
			}
			if len(b) == len(buf) {
				t.whole = false // the buffer is too small: only a walk reads all
			}
			children = append(children, numbers(b)...)
		}
	}
	slices.Sort(children)
	for _, pid := range slices.Compact(children) {
		if t.procs[pid] != nil {
			continue
		}
		more, err := t.meet(pid)
		if err != nil {
			return false, err
		}
		found = found || more
	}
	if !t.whole {
		return false, errEnded
	}
	return found, nil
}
