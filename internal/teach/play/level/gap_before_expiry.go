package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/teach/play"
)

func gapBeforeExpiry() Level {
	return Level{
		Name:    "gap-before-expiry",
		Title:   "One command too many",
		Task:    "Now the lock gets an expiry: SETNX, and then EXPIRE. A buyer may crash. Break it, or claim that a crash cannot.",
		Config:  play.Config{Strategy: "setnx-expire", Events: []explore.Event{explore.Crash}},
		Open:    true,
		Minutes: 4,
		Thought: "Of all the moments at which the holder may die, how many leave a lock without an expiry?",
		Deed:    "Crash the holder after its SETNX and before its EXPIRE.",
		Learned: "Two commands are two steps, and a process can die between them: few orders break, and a busy shop meets them all. SET " +
			"with NX and PX is one command, which is why Redis has had it since 2.6.12.",
		Source: "Redis documentation, SET, options NX and PX, and \"Patterns\"; SETNX, \"Handling deadlocks\"",
	}
}
