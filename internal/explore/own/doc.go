// Package own is a subject of package conduct: the buyers of a lock strategy of this project. It runs
// them on real servers, from the restored state to the verdict.
//
//	Runner: outlives schedules - connections, gates, servers, the clock
//	run:    one schedule - buyers, their commands on the way, events so far
//
// The run releases a command and waits until no buyer moves (settle.go). Then it records what the
// buyers did meanwhile (account.go). Each event is one file, event_*.go, and one line in events.all.
package own
