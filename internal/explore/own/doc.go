// Package own has the buyers of a lock strategy of this project as a subject of package conduct:
// on real servers, from the restored state to the verdict.
//
//	Runner: what outlives schedules - connections, gates, servers, the clock
//	run:    the subject - buyers, their commands on the way, what has happened
//
// A command is let go, then the run waits until all buyers are at rest (settle.go) and notes what
// they did meanwhile (account.go). An event is one file, event_*.go, and one line in events.all.
package own
