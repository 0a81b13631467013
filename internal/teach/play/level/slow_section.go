package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func slowSection() Level {
	return Level{
		Name:    "slow-section",
		Title:   "Slower than the lease",
		Task:    "A lease may run out unnoticed: the holder was paused, or was slow. Sell the unit twice.",
		Config:  play.Config{Strategy: "setnx-ttl", Events: []explore.Event{explore.Expire}},
		Goal:    verdict.Oversold,
		Minutes: 4,
		Thought: "A lease ends by the clock. Does its holder notice?",
		Deed:    "Take the holder past its read, let the lease run out (e), and have the other take the lock and buy.",
		Learned: "A lease bounds how long the dead hold a lock, and so also how long the living may: who is paused for longer writes " +
			"without it. No check before the write helps, since the pause may come after the check.",
		Source: "Kleppmann, \"How to do distributed locking\", 2016, \"Protecting a resource with a lock\"",
	}
}
