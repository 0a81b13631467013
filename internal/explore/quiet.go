package explore

import (
	"bytes"
	"runtime"
	"runtime/metrics"
	"slices"
)

// ours mark a goroutine that runs a strategy, in its stack or in the line that
// says who started it.
var ours = [][]byte{
	[]byte("/internal/lockstrategy."), []byte("/internal/lockstrategy/"), []byte("/oversell/rlock."), []byte("go-redsync"), []byte("explore.(*run).buy"),
	[]byte("explore.(*run).renew"), []byte("explore.(*Explorer).start"),
}

// parked are the states in which a goroutine can be woken by another goroutine
// or a timer alone. Timers do not count: the leases and waits that an
// exploration hands in are longer than any run.
//
// "semacquire" is not among them: it is the runtime's own, a goroutine that is
// about to start the garbage collector waits so for the very look at it.
var parked = [][]byte{
	[]byte("chan receive"), []byte("chan send"), []byte("select"),
	[]byte("sync.Mutex.Lock"), []byte("sync.RWMutex"), []byte("sync.WaitGroup.Wait"), []byte("sync.Cond.Wait"),
}

// listener is the one goroutine that waits for the network without a command of
// its own on the way; what is on its way to it is counted by pubsub.
var listener = []byte("rlock.(*subscriber).listen")

// sent is a command that was let go: of those the scheduler keeps account.
var sent = []byte("explore.(*gates).pass")

// listens: it is connected, and reads.
func listens(stack []byte) bool {
	return bytes.Contains(stack, []byte("explore.(*tap).Read")) &&
		!bytes.Contains(stack, []byte("(*PubSub).conn"))
}

// idleLooks is how often awaitIdle looks, at most.
const idleLooks = 200

// awaitIdle lets others run until, as far as the runtime's counters say, none
// wants to any more. They are approximate and cost a microsecond: what they
// spare is looks at all stacks, which alone decide and stop the world.
func awaitIdle(counters []metrics.Sample) {
	for range idleLooks {
		metrics.Read(counters)
		if counters[0].Value.Uint64() == 0 && counters[1].Value.Uint64() <= 1 { // this one runs
			return
		}
		runtime.Gosched()
	}
}

func idleCounters() []metrics.Sample {
	return []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/running:goroutines"}}
}

// standstill looks at all goroutines at one moment and reports whether none
// that runs a strategy can go on by itself. It decides by their states, not by
// time. buf is used again.
//
// Any goroutine that runs counts, whosever it is: a strategy may wait for a
// mutex of database/sql that it holds, or be it, and not show it before it has
// begun.
func standstill(buf *[]byte) bool {
	var n int
	for {
		n = runtime.Stack(*buf, true)
		if n < len(*buf) {
			break
		}
		*buf = make([]byte, 2*len(*buf))
	}
	i := -1
	for stack := range bytes.SplitSeq((*buf)[:n], []byte("\n\n")) {
		i++
		_, state, _ := bytes.Cut(stack, []byte("["))
		state, _, _ = bytes.Cut(state, []byte("]"))
		if bytes.HasPrefix(state, []byte("run")) { // running, runnable
			if i > 0 { // the first one looks
				return false
			}
			continue
		}
		if !slices.ContainsFunc(ours, func(mark []byte) bool { return bytes.Contains(stack, mark) }) {
			continue
		}
		if bytes.Contains(stack, sent) && bytes.HasPrefix(state, []byte("IO wait")) {
			continue
		}
		if bytes.Contains(stack, listener) {
			if !bytes.HasPrefix(state, []byte("IO wait")) || !listens(stack) {
				return false // it connects, or naps before it connects again
			}
		} else if !slices.ContainsFunc(parked, func(how []byte) bool { return bytes.HasPrefix(state, how) }) {
			return false
		}
	}
	return true
}

// rollback is a goroutine that will end a transaction whose context has ended.
var rollback = []byte("database/sql.(*Tx).awaitDone")

// strategiesEnded reports whether no goroutine of a strategy is left, nor one
// that would still send a command.
func strategiesEnded(buf *[]byte) bool {
	n := runtime.Stack(*buf, true)
	seen := func(mark []byte) bool { return bytes.Contains((*buf)[:n], mark) }
	return n < len(*buf) && !slices.ContainsFunc(ours, seen) && !seen(rollback)
}
