// Package run runs one schedule of a few buyers on real servers, from the restored
// state to the verdict.
//
//	Runner: what outlives schedules - connections, gates, servers, the clock
//	Run:    one schedule - buyers, what they have under way, what has happened
//
// A step is let go, then everything is waited for to come to rest (settle.go); what
// the buyers do meanwhile is accounted for (account.go). An event is one file,
// event_*.go, and one line in Events.
package run
