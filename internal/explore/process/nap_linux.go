package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

var errEnded = errors.New("somebody has ended")

// A wait is what a thread is blocked in, where a time-out will end it.
type wait struct {
	tid  int
	at   place
	sp   uint64
	word uint64        // of a futex: which, up to the halves of a condition variable
	left time.Duration // the time-out; until the deadline where it is one; -1: not known
}

// A place is where in the program a wait is, whichever thread of a pool has it.
type place struct {
	kind  string // of the thread
	call  int
	pc    uint64
	depth uint64 // the stack pointer within its page: stacks of threads begin at a page (pthread_create(3))
	loop  bool   // one of poll(2) and the like: pc and depth are 0, and time-outs differ
}

// idle is the timed waits of a program that has nothing to do.
type idle struct {
	most    map[place]int           // how many were there at once
	longest map[place]time.Duration // of loops
	same    map[wait]bool           // with left 0
}

// Baseline notes the timed waits of the program while it has nothing to do. It is called
// several times, since their threads wake now and then; what was seen adds up. No thread
// has to be asleep.
func (p *Program) Baseline() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.tree.whole && p.tree.walk() != nil {
		return
	}
	waits, _ := p.tree.waits()
	timers, _ := p.tree.timers()
	p.idle.note(append(waits, timers...))
}

func (i *idle) note(waits []wait) {
	if i.most == nil {
		*i = idle{map[place]int{}, map[place]time.Duration{}, map[wait]bool{}}
	}
	now := map[place]int{}
	for _, w := range waits {
		now[w.at]++
		i.most[w.at] = max(i.most[w.at], now[w.at])
		i.longest[w.at] = max(i.longest[w.at], w.left)
		w.left = 0
		i.same[w] = true
	}
}

// Napping reports whether a thread waits with a time-out of at most within that was not there
// when the program was idle, or a timer (timerfd_create(2)) will fire so soon: it will wake
// by itself. After an Asleep that was true it speaks of that moment. It is true, too, where a
// thread's wait cannot be read. Timers that send signals (timer_create(2)) and those of
// io_uring are not seen.
//
// A thread that waits for an answer with a time limit naps, too: ask where the program owes
// no answer to a gate, nor a gate one to it.
func (p *Program) Napping(within time.Duration) bool {
	naps, sure := p.napping(within)
	return naps || !sure
}

// napping is Napping that says whether every thread's wait was read. None of those that were
// is a nap where it is not sure.
func (p *Program) napping(within time.Duration) (naps, sure bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits, known := p.tree.waits()
	timers, has := p.tree.timers()
	if p.idle.nap(append(waits, timers...), within) {
		return true, true
	}
	// One that has fired before it was read has woken somebody.
	return false, known && (!has || !p.tree.still || p.tree.second())
}

// waits are the program's timed ones. known is false where somebody runs, or cannot be read.
func (t *tree) waits() (all []wait, known bool) {
	known = true
	for _, th := range t.order {
		if th.ended {
			continue
		}
		if !t.still {
			blocked, err := th.blocked()
			if th.kind == "" {
				_, _ = th.resting()
			}
			if gone(err) {
				t.whole = false
				continue
			}
			if err != nil || !blocked {
				known = false
				continue
			}
		}
		w, timed := th.wait()
		if !timed {
			continue
		}
		// Who has woken since may have written over the time that was read.
		if ran, err := th.count(); t.still && (err != nil || ran != th.ran) {
			known = false
			continue
		}
		all = append(all, w)
	}
	return all, known
}

// nap: the waits at a place are as many as when idle, and members of a pool take turns; or
// they are the very same. A loop's time-out is what is left until its next timer, so one that
// is shorter than when idle may be a nap's: it is one until the loop has gone round.
func (i idle) nap(waits []wait, within time.Duration) bool {
	now := map[place]int{}
	for _, w := range waits {
		if !i.other(w) {
			now[w.at]++
		}
	}
	for _, w := range waits {
		if w.left > within {
			continue
		}
		if i.other(w) || now[w.at] > i.most[w.at] && !i.known(w) {
			return true
		}
	}
	return false
}

// other reports that w is shorter than the waits at its place are, by more than a timer is
// late.
func (i idle) other(w wait) bool {
	return w.at.loop && (w.left < 0 || w.left*10 < i.longest[w.at]*9)
}

func (i idle) known(w wait) bool {
	w.left = 0
	return i.same[w]
}

// An end is how a system call is told when to give up.
type end struct {
	form  form
	arg   int  // which argument says it
	clock int  // of a deadline: which argument has the clock
	loop  bool // it waits for descriptors
}

type form int

const (
	_           form = iota
	ms               // milliseconds, none: negative
	timespec         // a pointer
	timeval          // a pointer
	deadline         // a pointer to a timespec of CLOCK_REALTIME
	clockSleep       // clock_nanosleep(2)
	futexWait        // futex(2)
	deadlineFor      // a pointer to a timespec, of the clock that another argument names
	unknown          // restart_syscall(2): a wait with a time-out that was interrupted, and not seen before
)

// wait is what the thread was blocked in when it was last read. timed: a time-out ends it.
func (t *thread) wait() (w wait, timed bool) {
	var v [9]uint64 // number, six arguments, stack pointer, instruction pointer
	n := 0
	for field := range bytes.FieldsSeq(t.call[:t.size]) {
		if n == len(v) {
			return w, false
		}
		value, err := strconv.ParseUint(string(field), 0, 64)
		if err != nil {
			return w, false // "-1": in no call
		}
		v[n], n = value, n+1
	}
	if n < len(v) {
		return w, false
	}
	if v[0] == unix.SYS_RESTART_SYSCALL && [8]uint64(v[1:]) == [8]uint64(t.timed[1:]) {
		v[0] = t.timed[0] // a signal came in between, and its arguments are those that it had
	}
	how, ok := ends[int(v[0])]
	if !ok {
		if how, ok = olderEnds[int(v[0])]; !ok {
			return w, false
		}
	}
	t.timed = v
	w = wait{tid: t.tid, sp: v[7], at: place{kind: t.kind, call: int(v[0]), pc: v[8], depth: v[7] & 0xff0}}
	if how.loop {
		w.at.pc, w.at.depth, w.at.loop, w.sp = 0, 0, true, 0
	}
	arg := func(i int) uint64 { return v[1+i] }
	at := arg(how.arg)
	switch how.form {
	case ms:
		w.left = time.Duration(int32(at)) * time.Millisecond
		return w, w.left >= 0
	case timespec:
		w.left = t.duration(at, time.Nanosecond)
	case timeval:
		w.left = t.duration(at, time.Microsecond)
	case deadline:
		w.left = t.until(at, unix.CLOCK_REALTIME)
	case deadlineFor:
		w.left = t.until(at, int32(arg(how.clock)))
	case clockSleep:
		if arg(1)&1 != 0 { // TIMER_ABSTIME
			w.left = t.until(at, int32(arg(0)))
		} else {
			w.left = t.duration(at, time.Nanosecond)
		}
	case futexWait:
		w.word = arg(0) &^ 7
		clock := int32(unix.CLOCK_MONOTONIC)
		if arg(1)&256 != 0 { // FUTEX_CLOCK_REALTIME
			clock = unix.CLOCK_REALTIME
		}
		switch arg(1) & 127 {
		case 0: // FUTEX_WAIT
			w.left = t.duration(at, time.Nanosecond)
		case 9, 11, 13: // FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI2
			w.left = t.until(at, clock)
		case 6: // FUTEX_LOCK_PI
			w.left = t.until(at, unix.CLOCK_REALTIME)
		default:
			return w, false
		}
	case unknown:
		w.left = -1
		return w, true
	}
	return w, at != 0
}

// duration reads a timespec or a timeval of two 64-bit numbers; -1: it cannot.
func (t *thread) duration(at uint64, unit time.Duration) time.Duration {
	var b [16]byte
	if at == 0 || !t.memory(at, b[:]) {
		return -1
	}
	seconds, rest := int64(binary.NativeEndian.Uint64(b[:])), int64(binary.NativeEndian.Uint64(b[8:]))
	if seconds < 0 || seconds > 1<<32 || rest < 0 || rest >= int64(time.Second/unit) {
		if seconds > 1<<32 {
			return 1<<63 - 1
		}
		return -1
	}
	return time.Duration(seconds)*time.Second + time.Duration(rest)*unit
}

// until is how long it takes to the deadline that a timespec says; -1: not known.
func (t *thread) until(at uint64, clock int32) time.Duration {
	deadline := t.duration(at, time.Nanosecond)
	var now unix.Timespec
	if deadline < 0 || unix.ClockGettime(clock, &now) != nil {
		return -1
	}
	return max(0, deadline-time.Duration(now.Nano()))
}
