package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func expiryInTheValue() Level {
	return Level{
		Name:  "expiry-in-the-value",
		Title: "The clock in the value",
		Task: "The oldest recipe: the expiry stands in the value of the key, by the clock of the buyer, and GETSET takes over what " +
			"has run out. Sell the unit twice.",
		Config:  play.Config{Strategy: "getset", Events: []explore.Event{explore.Expire}},
		Goal:    verdict.Oversold,
		Minutes: 5,
		Thought: "Who decides that a lease is over, if Redis does not?",
		Deed: "The other must have found the lock taken before the lease runs out; then it takes over by GETSET while the holder is " +
			"inside.",
		Learned: "The buyers decide by their own clocks that a lease is over, so a clock that runs ahead takes over from a holder that " +
			"is on time. An expiry belongs to the server that keeps the lock, where there is one clock.",
		Source: "Redis documentation, SETNX, \"Handling deadlocks\"",
	}
}
