package explore

import (
	"runtime"
	"runtime/debug"
)

// gcPercent lets the heap of a search, which is small, grow to some 20 MiB
// before it is collected: each collection stops what goes one step at a time.
const gcPercent = 400

// OneProcessor suits this process to a search, in which one goroutine at a time
// has something to do: the next one is not woken on another processor. bound: so
// are the servers that the process starts from now on, and all of them get the
// one processor (on Linux; elsewhere it changes nothing). A processor that has
// gone to sleep then need not be woken for each command, which else is most of
// what a short one costs. BenchmarkExplore measures both.
//
// It is for the whole process, until undo; the servers stay bound. It is not for
// Config.Overlap, where a server is to do two things at once.
func OneProcessor(bound bool) (undo func()) {
	processors := runtime.GOMAXPROCS(1)
	percent := debug.SetGCPercent(gcPercent)
	unbind := func() {}
	if bound {
		unbind = bind()
	}
	return func() {
		unbind()
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(processors)
	}
}
