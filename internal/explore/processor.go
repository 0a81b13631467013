package explore

import (
	"os"
	"runtime"
	"runtime/debug"
)

// gcPercent is GOGC for a search, whose heap is small at first and would be
// collected every few schedules.
const gcPercent = 400

// OneProcessor suits this process to a search, in which one goroutine at a time
// has something to do: the next one is not woken on another processor, and the
// heap is collected less often, unless GOGC is set.
//
// bound: the process and the servers that it starts from now on share the one
// processor (on Linux; elsewhere it changes nothing). One that has gone to sleep
// then need not be woken for each command: a fifth more schedules a second on
// MariaDB.
//
// It is for the whole process, until undo; the servers stay bound. It is not for
// Config.Overlap, where a server is to do two things at once.
func OneProcessor(bound bool) (undo func()) {
	processors := runtime.GOMAXPROCS(1)
	collect := func() {}
	if os.Getenv("GOGC") == "" {
		percent := debug.SetGCPercent(gcPercent)
		collect = func() { debug.SetGCPercent(percent) }
	}
	unbind := func() {}
	if bound {
		unbind = bind()
	}
	return func() {
		unbind()
		collect()
		runtime.GOMAXPROCS(processors)
	}
}
