package explore

import (
	"os"
	"runtime"
	"runtime/debug"
)

// gcPercent is the value of GOGC for a search. With the default, the small heap of a search would be collected every
// few schedules.
const gcPercent = 400

// OneProcessor limits this process to one processor for a search, in which only one goroutine at a time has work. This
// saves the time to wake the next goroutine on another processor. It also makes garbage collections rarer, unless GOGC
// is set.
//
// If bound is true, the process and the servers that it starts later are bound to one processor; this works only on Linux.
// Then a command need not wake a processor, which gives a fifth more schedules per second on MariaDB.
//
// OneProcessor affects the whole process until undo is called; the servers stay bound. Do not use it with
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
