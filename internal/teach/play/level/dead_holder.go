package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func deadHolder() Level {
	return Level{
		Name:    "dead-holder",
		Title:   "The holder dies",
		Task:    "SETNX takes the lock and DEL frees it. A buyer may crash. Have the shop stand still for ever, though a unit is left.",
		Config:  play.Config{Strategy: "setnx", Events: []explore.Event{explore.Crash}},
		Goal:    verdict.Stalled,
		Minutes: 3,
		Thought: "Who frees a lock whose holder is dead?",
		Deed:    "Let a buyer take the lock, let the other find it taken, and then crash the holder (e).",
		Learned: "A lock without an end is held by the dead as well as by the living: the shop stands still until a person deletes the " +
			"key. That is why leases exist, locks that run out by themselves.",
		Source: "Redis documentation, SETNX, \"Design pattern: Locking with SETNX\"; Gray and Cheriton, \"Leases\", SOSP 1989",
	}
}
