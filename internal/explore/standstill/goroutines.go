// Package standstill decides when the code under test can no longer continue by itself, so that the
// scheduler must take the next step. It reads the goroutine stacks of this process. For programs under
// test, package target/rest decides that, and package process observes their threads.
package standstill

import (
	"fmt"
	"path"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
)

// Goroutines decides whether the code under test in this process can continue by itself. It decides by
// states, not by time. It serves one goroutine.
type Goroutines struct {
	marks  marks
	stacks []byte // buffer that is reused
	idle   []metrics.Sample
	left   map[string]bool // goroutines of earlier strategies, see NewGoroutines
}

// NewGoroutines recognizes the code under test by three kinds of names in a stack: the strategy's
// package, the packages that the catalogue's strategies use, and entries, the functions that run a
// strategy in a goroutine.
//
// A goroutine that already exists belongs to a failed exploration, and counts only while it runs.
// Otherwise one strategy's endless goroutine would be blamed on the next strategy.
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

// parked are the states from which only another goroutine or a timer can wake a goroutine. Timers do
// not count: the explorer's leases and waits are longer than any run, and its clock stands still.
//
// "semacquire" is not among them. It is a state of the runtime: a goroutine that is about to start the
// garbage collector waits in it for this very look.
var parked = []string{
	"chan receive", "chan send", "select",
	"sync.Mutex.Lock", "sync.RWMutex", "sync.WaitGroup.Wait", "sync.Cond.Wait",
}

// idleLooks is the maximum number of looks of awaitIdle.
const idleLooks = 200

// awaitIdle yields until, by the runtime's counters, no other goroutine wants to run. The counters are
// approximate and cost a microsecond. They save looks at all stacks, which stop the world, and which
// alone decide.
func (g *Goroutines) awaitIdle() {
	for range idleLooks {
		metrics.Read(g.idle)
		if g.idle[0].Value.Uint64() == 0 && g.idle[1].Value.Uint64() <= 1 { // only this goroutine runs
			return
		}
		runtime.Gosched()
	}
}

// AtRest looks at all goroutines at one moment. It reports whether none can continue by itself: each
// waits for another goroutine, for a command that was released, or for a message. The caller must know
// that no message is on its way.
//
// Every running goroutine counts. A strategy may wait for a mutex of database/sql that such a goroutine
// holds. The goroutine may also be about to run the strategy, without a sign of that yet.
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

// all returns the stacks of all goroutines at one moment. The race detector looks up each part of a
// []byte that is compared, but not of a string.
func (g *Goroutines) all() string {
	for {
		n := runtime.Stack(g.stacks, true)
		if n < len(g.stacks) {
			return string(g.stacks[:n])
		}
		g.stacks = make([]byte, 2*len(g.stacks))
	}
}

// isOurs reports whether the goroutine runs a strategy.
func (m *marks) isOurs(stack string) bool {
	return slices.ContainsFunc(m.ours, func(mark string) bool { return strings.Contains(stack, mark) })
}

// waits reports whether a goroutine of the strategy cannot continue by itself.
func (m *marks) waits(stack, state string) bool {
	network := strings.HasPrefix(state, "IO wait") || strings.Contains(stack, m.answer)
	switch {
	case network && strings.Contains(stack, m.sent):
		return true
	case strings.Contains(stack, m.answer): // it connects, or checks a connection
		return false
	case strings.Contains(stack, m.listener): // it connects, or sleeps before it reconnects
		return network && strings.Contains(stack, m.reads) && !strings.Contains(stack, m.connects)
	}
	return slices.ContainsFunc(parked, func(how string) bool { return strings.HasPrefix(state, how) })
}

// Ended reports whether no goroutine of a strategy is left, and none that would still send a command.
func (g *Goroutines) Ended() bool { return g.unended() == "" }

// unended returns the stack of one goroutine that keeps Ended false; "" if there is none.
func (g *Goroutines) unended() string {
	all := g.all()
	if !g.marks.isOurs(all) && !strings.Contains(all, g.marks.rollback) {
		return ""
	}
	for stack := range strings.SplitSeq(all, "\n\n") {
		// A goroutine in "chan receive" waits for a context that has not ended, so it rolls nothing back.
		rollsBack := strings.Contains(stack, g.marks.rollback) && !strings.Contains(stack, " [chan receive")
		if rollsBack || g.marks.isOurs(stack) && !g.left[id(stack)] {
			return stack
		}
	}
	return ""
}

// Unended describes the wait of one goroutine that keeps Ended false, and its place in the code; "" if
// there is none.
func (g *Goroutines) Unended() string {
	stack := g.unended()
	if stack == "" {
		return ""
	}
	_, state, _ := strings.Cut(stack, "[")
	state, frames, _ := strings.Cut(state, "]:\n")
	state, _, _ = strings.Cut(state, ",") // without the length of the wait
	lines := strings.Split(frames, "\n")
	for i := 0; i+1 < len(lines); i += 2 { // two lines a frame: the function, then the file and line
		if !g.marks.isOurs(lines[i]) {
			continue
		}
		at, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		return fmt.Sprintf("%s at %s", state, path.Base(at))
	}
	return state
}
