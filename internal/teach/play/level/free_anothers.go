package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func freeAnothers() Level {
	return Level{
		Name:    "free-anothers",
		Title:   "Free a lock that is not yours",
		Task:    "The same lock. This time no sale has to go wrong: have one buyer delete the lock that the other holds.",
		Config:  play.Config{Strategy: "setnx-ttl", Events: []explore.Event{explore.Expire}},
		Goal:    verdict.Unlocked,
		Minutes: 4,
		Thought: "DEL asks nobody whose key it is. When does a buyer send it, and whose may the key be by then?",
		Deed:    "Let the holder get as far as its DEL. Then the lease runs out, and the other takes the lock.",
		Learned: "Who deletes by name alone deletes whatever stands there, and a third buyer then comes in beside the second: one late " +
			"buyer breaks the lock for all that follow. So a lock has to carry a token that says whose it is.",
		Source: "Redis documentation, SET, \"Patterns\"; \"Distributed Locks with Redis\", section \"Correct Implementation with a Single " +
			"Instance\"",
	}
}
