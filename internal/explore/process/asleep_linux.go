package process

import "slices"

// Refresh looks for the processes and threads of the program anew, all of them. The error
// says why nobody can tell when it rests: then it is never Asleep.
func (p *Program) Refresh() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tree.walk()
}

// Asleep reports whether at one moment during the call every thread of every process of the
// program slept, and nothing that it wrote was unread. It is exact when true: whoever has
// slept on since an earlier call is looked at once, others twice. False is also the answer
// where threads cannot be read; Refresh says why.
func (p *Program) Asleep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tree.still = p.tree.asleep(func() bool {
		return p.log == nil || !p.log.unread() // a full pipe is emptied without anybody's doing
	})
	return p.tree.still
}

// maxRounds bounds the looks for those whom new threads have started: so many generations
// in so little time are not asleep.
const maxRounds = 8

// asleep: each thread was blocked at a time before moment(), was not switched in until a
// time after it, and had not been woken by then. So all slept at that moment.
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

// first looks at those who have run since they were last seen to sleep, and at whom they
// have started meanwhile. found: there are new ones.
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
	// Each of them was blocked before this look at what it has started. If it has run
	// after that, the second look will say so.
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

// sleeps reads the count before the rest: a thread that ran after it has another one.
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

// second looks whether all have slept on.
func (t *tree) second() bool {
	for i, th := range t.order {
		asleep, err := true, error(nil)
		if !th.ended { // else it must still be there: that its parent asks for it is an end, too
			asleep, err = th.asleep()
		}
		if err == nil && asleep {
			var ran uint64
			if ran, err = th.count(); err == nil && ran == th.ran {
				continue
			}
		}
		if err != nil {
			t.whole = false // it has ended: who has its children now?
		}
		th.slept = false
		t.early(i)
		return false
	}
	return true
}

// early has the thread looked at first from now on: who runs now runs on for a while.
func (t *tree) early(i int) {
	th := t.order[i]
	copy(t.order[1:i+1], t.order[:i])
	t.order[0] = th
}

// born looks for new children of those who have run. The children of who has ended are
// those of the first thread of a process above it (prctl(2), PR_SET_CHILD_SUBREAPER), so
// the root comes last. A list skips a child only where one in it has ended (fs/proc/array.c),
// and then that one is not met.
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
				t.whole = false // more than fit: only a walk reads them all
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
