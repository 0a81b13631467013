package process

import "slices"

// Refresh finds all processes and threads of the program anew. The error says why their rest cannot be
// observed; then Asleep always returns false.
func (p *Program) Refresh() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tree.walk()
}

// Asleep reports whether, at one moment during the call, every thread of the program slept and all of its
// output was read. The answer true is certain. Asleep looks once at a thread that has slept since an earlier
// call, and twice at any other thread. It also returns false if threads cannot be read; Refresh says why.
func (p *Program) Asleep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tree.still = p.tree.asleep(func() bool {
		return p.log == nil || !p.log.unread() // a full pipe empties without any action
	})
	return p.tree.still
}

// maxRounds is the maximum number of looks for threads that new threads have started. A program that
// starts more generations in that time is not asleep.
const maxRounds = 8

// asleep reports whether each thread was blocked before moment(), was not switched in until after it,
// and had not been woken by then. So all slept at that moment.
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

// first looks at the threads that have run since they were last seen asleep, and at the threads that
// those have started. found reports whether they have started any.
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
	// Each of them was blocked before this look at its children. If it has run since, the second look
	// will show that.
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

// sleeps reads the count first: a thread that runs after it has a different count.
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

// second reports whether all threads have slept on.
func (t *tree) second() bool {
	for i, th := range t.order {
		asleep, err := true, error(nil)
		if !th.ended { // an ended thread must still be there, since its parent's wait for it is an end, too
			asleep, err = th.asleep()
		}
		if err == nil && asleep {
			var ran uint64
			if ran, err = th.count(); err == nil && ran == th.ran {
				continue
			}
		}
		if err != nil {
			t.whole = false // it has ended, so another process has its children
		}
		th.slept = false
		t.early(i)
		return false
	}
	return true
}

// early makes the thread the first to be looked at, since a running thread usually keeps running.
func (t *tree) early(i int) {
	th := t.order[i]
	copy(t.order[1:i+1], t.order[:i])
	t.order[0] = th
}

// born looks for new children of the threads that have run. The children of an ended thread belong to
// the first thread of a process above it (prctl(2), PR_SET_CHILD_SUBREAPER), so the root comes last. A
// list omits a child only if another child in it has ended (fs/proc/array.c), and then that one is
// missing.
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
