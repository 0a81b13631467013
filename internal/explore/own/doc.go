// Package own implements conduct.Subject for the lock strategies of this project. It runs the buyers of one schedule on
// real servers, from the restored state to the verdict. Gates hold the buyers' commands until the run releases them.
//
//	Runner: kept for all schedules - connections, gates, servers, the clock
//	run:    one schedule - buyers, their commands on the way, events so far
//
// The run releases a command and waits until no buyer can continue by itself (settle.go). Then it applies the buyers'
// reports (account.go). Each event is one file, event_*.go, and one line in events.all.
package own
