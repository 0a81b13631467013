package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

var errEnded = errors.New("a thread has ended")

// A wait is a system call that blocks a thread until an event or a time-out.
type wait struct {
	tid  int
	at   place
	sp   uint64
	word uint64        // for a futex: its address, rounded down to 8 bytes, since a condition variable alternates between two addresses
	left time.Duration // time until the time-out or deadline; -1: unknown
}

// A place is the position of a wait in the program. It is the same for all threads of a pool.
type place struct {
	kind  string // kind of thread
	call  int
	pc    uint64
	depth uint64 // stack pointer within its page; a thread's stack begins at a page (pthread_create(3))
	loop  bool   // the call is poll(2) or similar: pc and depth are 0, and time-outs differ
}

// idle describes the timed waits of an idle program.
type idle struct {
	most    map[place]int           // maximum number of waits at the same time
	longest map[place]time.Duration // for loops: the longest time-out
	same    map[wait]bool           // all waits that were seen, with left set to 0
	fires   bool                    // the program has had a timer of timerfd_create(2)
}

// Baseline records the timed waits of the idle program, and reports whether it found a new one. Call it several times:
// threads wake from time to time, and the results accumulate. The threads need not be asleep.
func (p *Program) Baseline() (found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.tree.whole && p.tree.walk() != nil {
		return true
	}
	waits, _ := p.tree.waits()
	timers, has := p.tree.timers()
	found = p.idle.note(append(waits, timers...))
	p.idle.fires = p.idle.fires || has
	return found
}

func (i *idle) note(waits []wait) (found bool) {
	if i.most == nil {
		*i = idle{most: map[place]int{}, longest: map[place]time.Duration{}, same: map[wait]bool{}}
	}
	now := map[place]int{}
	for _, w := range waits {
		now[w.at]++
		found = found || now[w.at] > i.most[w.at] || w.left > i.longest[w.at]
		i.most[w.at] = max(i.most[w.at], now[w.at])
		i.longest[w.at] = max(i.longest[w.at], w.left)
		w.left = 0
		i.same[w] = true
	}
	return found
}

// Sleeping reports whether the program will wake by itself within the given time. It will if a thread waits with a
// time-out that it did not have when the program was idle, or if a timer (timerfd_create(2)) will fire. If the last
// Asleep returned true, the result describes that moment. Sleeping also returns true if a thread's wait cannot be read.
// It ignores timers that send signals (timer_create(2)), and those of io_uring.
//
// A thread that waits for an answer with a time limit also counts. So call Sleeping only when the program owes no
// answer to a gate, and no gate owes an answer to the program.
func (p *Program) Sleeping(within time.Duration) bool {
	sleeps, sure := p.sleeping(within, false)
	return sleeps || !sure
}

// Wakes is a faster Sleeping for frequent calls. It reads the timers of timerfd_create(2), which takes longer than
// everything else, only if the idle program has one.
func (p *Program) Wakes(within time.Duration) bool {
	sleeps, sure := p.sleeping(within, true)
	return sleeps || !sure
}

// Soonest returns the shortest time-out with which a thread waits, except for waits of the idle program. The result
// `timed` is false if there is no such wait. The time-out counts from the beginning of the wait.
func (p *Program) Soonest() (left time.Duration, timed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits, _ := p.tree.waits()
	for _, w := range waits {
		if w.left >= 0 && (!timed || w.left < left) && p.idle.sleep([]wait{w}, w.left) {
			left, timed = w.left, true
		}
	}
	return left, timed
}

// sleeping does the work of Sleeping or, if `often` is true, of Wakes. The result `sure` is false if some thread's wait
// could not be read and no other wait is a sleep.
func (p *Program) sleeping(within time.Duration, often bool) (sleeps, sure bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits, known := p.tree.waits()
	var timers []wait
	has := false
	if !often || p.idle.fires {
		timers, has = p.tree.timers()
	}
	if p.idle.sleep(append(waits, timers...), within) {
		return true, true
	}
	// If a timer fired before it was read, it has woken a thread. Then the method `second` returns false.
	return false, known && (!has || !p.tree.still || p.tree.second())
}

// waits returns the program's timed waits. The result `known` is false if a thread runs or cannot be read.
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
		// If the thread has woken since, it may have overwritten the time in its memory.
		if ran, err := th.count(); t.still && (err != nil || ran != th.ran) {
			known = false
			continue
		}
		all = append(all, w)
	}
	return all, known
}

// sleep reports whether a wait that the idle program did not have ends within the given time. It ignores a place with
// no more waits than in the idle program, since the members of a pool take turns. An event loop waits until its next
// timer. So a time-out of a loop that is shorter than in the idle program shows a new timer, and counts.
func (i idle) sleep(waits []wait, within time.Duration) bool {
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

// other reports whether w is shorter than the usual waits of its loop, by more than the delay of a timer.
func (i idle) other(w wait) bool {
	return w.at.loop && (w.left < 0 || w.left*10 < i.longest[w.at]*9)
}

func (i idle) known(w wait) bool {
	w.left = 0
	return i.same[w]
}

// An end describes how a system call takes its time-out.
type end struct {
	form  form
	arg   int  // index of the argument with the time
	clock int  // for a deadline: index of the argument with the clock
	loop  bool // the call waits for descriptors
}

type form int

const (
	_           form = iota
	ms               // milliseconds; negative: no time-out
	timespec         // a pointer
	timeval          // a pointer
	deadline         // a pointer to a timespec of CLOCK_REALTIME
	clockSleep       // clock_nanosleep(2)
	futexWait        // futex(2)
	deadlineFor      // a pointer to a timespec; another argument names the clock
	unknown          // restart_syscall(2): an interrupted wait with a time-out, not seen before
)

// wait returns the wait in which the thread was last seen blocked. The result `timed` reports whether the wait has a
// time-out.
func (t *thread) wait() (w wait, timed bool) {
	var v [9]uint64 // number, six arguments, stack pointer, instruction pointer
	n := 0
	for field := range bytes.FieldsSeq(t.call[:t.size]) {
		if n == len(v) {
			return w, false
		}
		value, err := strconv.ParseUint(string(field), 0, 64)
		if err != nil {
			return w, false // "-1": not in a system call
		}
		v[n], n = value, n+1
	}
	if n < len(v) {
		return w, false
	}
	if v[0] == unix.SYS_RESTART_SYSCALL && [8]uint64(v[1:]) == [8]uint64(t.timed[1:]) {
		v[0] = t.timed[0] // after a signal, the previous call continues with the same arguments
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

// duration reads a timespec or a timeval of two 64-bit numbers; -1 if that fails.
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

// until returns the time until the deadline in a timespec; -1 if it is unknown.
func (t *thread) until(at uint64, clock int32) time.Duration {
	deadline := t.duration(at, time.Nanosecond)
	var now unix.Timespec
	if deadline < 0 || unix.ClockGettime(clock, &now) != nil {
		return -1
	}
	return max(0, deadline-time.Duration(now.Nano()))
}
