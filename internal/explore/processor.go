package explore

import (
	"os"
	"runtime"
	"runtime/debug"
)

// gcPercent is GOGC for a search. The heap of a search is small at first, and would be collected every
// few schedules.
const gcPercent = 400

// OneProcessor prepares this process for a search, in which one goroutine at a time has work. The next
// goroutine is then not woken on another processor. The heap is collected less often, unless GOGC is
// set.
//
// With bound, the process and the servers that it starts later share one processor on Linux; elsewhere
// bound has no effect. A sleeping process need not be woken for each command then, which gives a fifth
// more schedules per second on MariaDB.
//
// OneProcessor applies to the whole process until undo; the servers stay bound. Do not use it with
// Config.Overlap, where a server has two commands at once.
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
