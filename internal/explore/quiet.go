package explore

import (
	"bytes"
	"runtime"
)

// ours mark a goroutine that runs a strategy, in its stack or in the line that
// says who started it.
var ours = [][]byte{
	[]byte("/internal/lockstrategy."), []byte("/oversell/rlock."), []byte("go-redsync"), []byte("explore.(*run).buy"),
	[]byte("explore.(*Explorer).start"),
}

// unborn mark a goroutine that may be of a strategy and does not show it before
// it has begun: then it is about to run.
var unborn = [][]byte{
	[]byte("created by sync.(*WaitGroup).Go"), []byte("created by time.goFunc"), []byte("created by context."),
}

// parked are the states in which a goroutine can be woken by another goroutine
// or a timer alone. Timers do not count: the leases and waits that an
// exploration hands in are longer than any run.
var parked = [][]byte{
	[]byte("chan receive"), []byte("chan send"), []byte("select"), []byte("semacquire"),
	[]byte("sync.Mutex.Lock"), []byte("sync.RWMutex"), []byte("sync.WaitGroup.Wait"), []byte("sync.Cond.Wait"),
}

// listener is the one goroutine that waits for the network without a command of
// its own on the way; what is on its way to it is counted by pubsub.
var listener = []byte("rlock.(*hub).listen")

// standstill looks at all goroutines at one moment and reports whether none
// that runs a strategy can go on by itself. It decides by their states, not by
// time. buf is used again.
func standstill(buf *[]byte) bool {
	var n int
	for {
		n = runtime.Stack(*buf, true)
		if n < len(*buf) {
			break
		}
		*buf = make([]byte, 2*len(*buf))
	}
	for stack := range bytes.SplitSeq((*buf)[:n], []byte("\n\n")) {
		_, state, _ := bytes.Cut(stack, []byte("["))
		state, _, _ = bytes.Cut(state, []byte("]"))
		if !contains(stack, ours) {
			if bytes.HasPrefix(state, []byte("run")) && contains(stack, unborn) { // running, runnable
				return false
			}
			continue
		}
		if !hasPrefix(state, parked) && !(bytes.HasPrefix(state, []byte("IO wait")) && bytes.Contains(stack, listener)) {
			return false
		}
	}
	return true
}

func contains(b []byte, any [][]byte) bool {
	for _, x := range any {
		if bytes.Contains(b, x) {
			return true
		}
	}
	return false
}

func hasPrefix(b []byte, any [][]byte) bool {
	for _, x := range any {
		if bytes.HasPrefix(b, x) {
			return true
		}
	}
	return false
}

// strategiesEnded reports whether no goroutine of a strategy is left.
func strategiesEnded(buf *[]byte) bool {
	n := runtime.Stack(*buf, true)
	return n < len(*buf) && !contains((*buf)[:n], ours)
}
