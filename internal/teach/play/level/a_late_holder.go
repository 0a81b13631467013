package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/teach/play"
)

func aLateHolder() Level {
	return Level{
		Name:  "a-late-holder",
		Title: "A token that the table checks",
		Task: "Each grant of the lock brings a number that grows, and the UPDATE writes only where no higher number has been. The " +
			"lease may run out. Sell the unit twice, or claim that nobody can.",
		Config:  play.Config{Strategy: "fenced", Events: []explore.Event{explore.Expire}},
		Nobody:  true,
		Open:    true,
		Minutes: 6,
		Thought: "The late holder still writes. What does its UPDATE ask for now?",
		Deed: "Play the order that broke the lease: past the read, expire, the other buys. Then look at what the late UPDATE comes " +
			"to.",
		Learned: "The lock may break, and the sale does not: what is written to refuses a token that is older than the newest it has " +
			"seen. The late holder is told lock_lost, and that is a loss of time alone.",
		Source: "Kleppmann, \"How to do distributed locking\", 2016, \"Making the lock safe with fencing\"; org.redisson.RedissonFencedLock",
	}
}
