// Package standstill knows when the code under test is at rest: when nothing of it can go on by
// itself, so that the next step is the scheduler's. It asks the stacks of this process; package
// process asks the threads of others.
package standstill

import (
	"bytes"
	"fmt"
	"path"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
)

// Goroutines knows whether the code under test in this process is at rest. It decides by states,
// not by time. It is for one goroutine.
type Goroutines struct {
	marks  marks
	stacks []byte // used again and again
	idle   []metrics.Sample
	left   map[string]bool // goroutines of a strategy that were there before, see NewGoroutines
}

// NewGoroutines knows a goroutine of the code under test by the package of its
// strategy, those that the catalogue's stand on, and entries: functions that run one
// in a goroutine.
//
// What is there already is of an exploration that has failed, and counts only while
// it runs: one strategy's goroutine that does not end must not be laid at the door of
// the next.
func NewGoroutines(strategy any, entries ...any) *Goroutines {
	g := &Goroutines{
		marks: newMarks(strategy, entries), stacks: make([]byte, 1<<18),
		idle: []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/running:goroutines"}},
		left: map[string]bool{},
	}
	for stack := range bytes.SplitSeq(g.all(), []byte("\n\n")) {
		if g.marks.isOurs(stack) {
			g.left[id(stack)] = true
		}
	}
	return g
}

// id is a goroutine's own, as its stack begins: "goroutine 12 [select]:".
func id(stack []byte) string {
	name, _, _ := bytes.Cut(stack, []byte(" ["))
	return string(name)
}

// parked are the states in which a goroutine can be woken by another goroutine
// or a timer alone. Timers do not count: the leases and waits that an
// exploration hands in are longer than any run, and its clock stands still.
//
// "semacquire" is not among them: it is the runtime's own, a goroutine that is
// about to start the garbage collector waits so for the very look at it.
var parked = [][]byte{
	[]byte("chan receive"), []byte("chan send"), []byte("select"),
	[]byte("sync.Mutex.Lock"), []byte("sync.RWMutex"), []byte("sync.WaitGroup.Wait"), []byte("sync.Cond.Wait"),
}

// idleLooks is how often awaitIdle looks, at most.
const idleLooks = 200

// awaitIdle lets others run until, as far as the runtime's counters say, none
// wants to any more. They are approximate and cost a microsecond: what they
// spare is looks at all stacks, which alone decide and stop the world.
func (g *Goroutines) awaitIdle() {
	for range idleLooks {
		metrics.Read(g.idle)
		if g.idle[0].Value.Uint64() == 0 && g.idle[1].Value.Uint64() <= 1 { // this one runs
			return
		}
		runtime.Gosched()
	}
}

// AtRest looks at all goroutines at one moment. It reports whether nothing can go on by itself:
// each waits for another one, for a command that was let go, or for a message. The caller must
// know that no message is on its way.
//
// Any goroutine that runs counts, whosever it is: a strategy may wait for a
// mutex of database/sql that it holds, or be it, and not show it before it has
// begun.
func (g *Goroutines) AtRest() bool {
	g.awaitIdle()
	i := -1
	for stack := range bytes.SplitSeq(g.all(), []byte("\n\n")) {
		i++
		_, state, _ := bytes.Cut(stack, []byte("["))
		state, _, _ = bytes.Cut(state, []byte("]"))
		if bytes.HasPrefix(state, []byte("run")) { // running, runnable
			if i > 0 { // the first one looks
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

// all are the stacks of all goroutines, at one moment.
func (g *Goroutines) all() []byte {
	for {
		n := runtime.Stack(g.stacks, true)
		if n < len(g.stacks) {
			return g.stacks[:n]
		}
		g.stacks = make([]byte, 2*len(g.stacks))
	}
}

// isOurs: the goroutine runs a strategy.
func (m *marks) isOurs(stack []byte) bool {
	return slices.ContainsFunc(m.ours, func(mark []byte) bool { return bytes.Contains(stack, mark) })
}

// waits: a goroutine of ours cannot go on by itself.
func (m *marks) waits(stack, state []byte) bool {
	network := bytes.HasPrefix(state, []byte("IO wait")) || bytes.Contains(stack, m.answer)
	switch {
	case network && bytes.Contains(stack, m.sent):
		return true
	case bytes.Contains(stack, m.answer): // it connects, or asks whether a connection lives
		return false
	case bytes.Contains(stack, m.listener): // or it connects, or naps before it connects again
		return network && bytes.Contains(stack, m.reads) && !bytes.Contains(stack, m.connects)
	}
	return slices.ContainsFunc(parked, func(how []byte) bool { return bytes.HasPrefix(state, how) })
}

// Ended reports whether no goroutine of a strategy is left, nor one that would
// still send a command.
func (g *Goroutines) Ended() bool { return g.unended() == nil }

// unended returns the stack of one goroutine that keeps Ended false; nil if there is none.
func (g *Goroutines) unended() []byte {
	all := g.all()
	if !g.marks.isOurs(all) && !bytes.Contains(all, g.marks.rollback) {
		return nil
	}
	for stack := range bytes.SplitSeq(all, []byte("\n\n")) {
		// A goroutine in "chan receive" waits for a context that has not ended, so it rolls nothing back.
		rollsBack := bytes.Contains(stack, g.marks.rollback) && !bytes.Contains(stack, []byte(" [chan receive"))
		if rollsBack || g.marks.isOurs(stack) && !g.left[id(stack)] {
			return stack
		}
	}
	return nil
}

// Unended says what one goroutine that keeps Ended false waits for, and where; "" if there is none.
func (g *Goroutines) Unended() string {
	stack := g.unended()
	if stack == nil {
		return ""
	}
	_, state, _ := strings.Cut(string(stack), "[")
	state, frames, _ := strings.Cut(state, "]:\n")
	state, _, _ = strings.Cut(state, ",") // without the length of the wait
	lines := strings.Split(frames, "\n")
	for i := 0; i+1 < len(lines); i += 2 { // two lines a frame: the function, then the file and line
		if !g.marks.isOurs([]byte(lines[i])) {
			continue
		}
		at, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		return fmt.Sprintf("%s at %s", state, path.Base(at))
	}
	return state
}
