// Package standstill decides whether all code under test waits. Then the scheduler must release the next command. It
// reads the goroutine stacks of this process. For programs under test, package target/rest decides this, and package
// process observes their threads.
package standstill

import (
	"fmt"
	"path"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
)

// Goroutines decides whether the code under test in this process can continue by itself. It uses the states of
// goroutines, not time. Only one goroutine may use it.
type Goroutines struct {
	marks  marks
	stacks []byte // reused buffer
	idle   []metrics.Sample
	left   map[string]bool // goroutines that earlier strategies left behind, see NewGoroutines
}

// NewGoroutines recognizes the code under test by names in a stack. These are the strategy's package, the packages that
// strategies of the catalogue use, and the functions in entries, each of which runs a strategy in a goroutine.
//
// If a goroutine of a strategy exists already, a failed exploration has left it behind. It counts only while it runs,
// because the next strategy would otherwise be blamed for it.
func NewGoroutines(strategy any, entries ...any) *Goroutines {
	g := &Goroutines{
		marks: newMarks(strategy, entries), stacks: make([]byte, 1<<18),
		idle: []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/running:goroutines"}},
		left: map[string]bool{},
	}
	for stack := range strings.SplitSeq(g.all(), "\n\n") {
		if g.marks.isOurs(stack) {
			g.left[strings.Clone(id(stack))] = true
		}
	}
	return g
}

// id returns the goroutine's number from the first line of its stack: "goroutine 12 [select]:".
func id(stack string) string {
	name, _, _ := strings.Cut(stack, " [")
	return name
}

// parked are the states in which a goroutine continues only after another goroutine or a timer wakes it. Timers do not
// matter: the explorer's leases and waits last longer than any run, and its clock does not advance.
//
// The state "semacquire" is not in the list. A goroutine that is about to start the garbage collector has this state
// while the stacks are read, and continues afterwards.
var parked = []string{
	"chan receive", "chan send", "select",
	"sync.Mutex.Lock", "sync.RWMutex", "sync.WaitGroup.Wait", "sync.Cond.Wait",
}

// idleLooks is the maximum number of checks in awaitIdle.
const idleLooks = 200

// awaitIdle yields until no other goroutine wants to run, according to the runtime's counters. They are approximate,
// but a read takes only a microsecond. Reading all stacks is reliable but stops all goroutines, so awaitIdle avoids it
// while goroutines still run.
func (g *Goroutines) awaitIdle() {
	for range idleLooks {
		metrics.Read(g.idle)
		if g.idle[0].Value.Uint64() == 0 && g.idle[1].Value.Uint64() <= 1 { // only this goroutine runs
			return
		}
		runtime.Gosched()
	}
}

// AtRest inspects all goroutines at one moment. It reports whether none can continue by itself: each waits for another
// goroutine, a released command, or a message. The caller must know that no message is in transit.
//
// Every running goroutine counts, with any stack. The goroutine may be about to call the strategy, or it may hold a
// mutex of database/sql for which the strategy waits.
func (g *Goroutines) AtRest() bool {
	g.awaitIdle()
	i := -1
	for stack := range strings.SplitSeq(g.all(), "\n\n") {
		i++
		_, state, _ := strings.Cut(stack, "[")
		state, _, _ = strings.Cut(state, "]")
		if strings.HasPrefix(state, "run") { // running, runnable
			if i > 0 { // the first goroutine is this one
				return false
			}
			continue
		}
		if g.marks.isOurs(stack) && !g.marks.waits(stack, state) && !g.left[id(stack)] {
			return false
		}
	}
	return true
}

// all returns the stacks of all goroutines at one moment. The result is a string, because the race detector would check
// each byte of a []byte that is compared.
func (g *Goroutines) all() string {
	for {
		n := runtime.Stack(g.stacks, true)
		if n < len(g.stacks) {
			return string(g.stacks[:n])
		}
		g.stacks = make([]byte, 2*len(g.stacks))
	}
}

func (m *marks) isOurs(stack string) bool {
	return slices.ContainsFunc(m.ours, func(mark string) bool { return strings.Contains(stack, mark) })
}

// waits reports whether a goroutine of the strategy waits for something else and cannot continue by itself.
func (m *marks) waits(stack, state string) bool {
	network := strings.HasPrefix(state, "IO wait") || strings.Contains(stack, m.answer)
	switch {
	case network && strings.Contains(stack, m.sent):
		return true
	case strings.Contains(stack, m.answer): // a driver's goroutine that connects, or checks a connection
		return false
	case strings.Contains(stack, m.listener): // a lock client's goroutine: if it does not read, it connects, or sleeps before it reconnects
		return network && strings.Contains(stack, m.reads) && !strings.Contains(stack, m.connects)
	}
	return slices.ContainsFunc(parked, func(how string) bool { return strings.HasPrefix(state, how) })
}

// Ended reports whether all goroutines of a strategy have ended, and no goroutine will send another command.
func (g *Goroutines) Ended() bool { return g.unended() == "" }

// unended returns the stack of one goroutine that has not ended; "" if there is none.
func (g *Goroutines) unended() string {
	all := g.all()
	if !g.marks.isOurs(all) && !strings.Contains(all, g.marks.rollback) {
		return ""
	}
	for stack := range strings.SplitSeq(all, "\n\n") {
		// A goroutine in "chan receive" waits for a context that has not ended, so it does not roll back yet.
		rollsBack := strings.Contains(stack, g.marks.rollback) && !strings.Contains(stack, " [chan receive")
		if rollsBack || g.marks.isOurs(stack) && !g.left[id(stack)] {
			return stack
		}
	}
	return ""
}

// Unended describes one goroutine that has not ended, with its state and its place in the code; "" if there is none.
func (g *Goroutines) Unended() string {
	stack := g.unended()
	if stack == "" {
		return ""
	}
	_, state, _ := strings.Cut(stack, "[")
	state, frames, _ := strings.Cut(state, "]:\n")
	state, _, _ = strings.Cut(state, ",") // drop the duration of the wait
	lines := strings.Split(frames, "\n")
	for i := 0; i+1 < len(lines); i += 2 { // each frame has two lines: the function, then the file and line
		if !g.marks.isOurs(lines[i]) {
			continue
		}
		at, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		return fmt.Sprintf("%s at %s", state, path.Base(at))
	}
	return state
}
