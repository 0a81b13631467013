package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/teach/play"
)

func expiryInOne() Level {
	return Level{
		Name:    "expiry-in-one",
		Title:   "Can the dead still stop the shop?",
		Task:    "SET NX PX: lock and expiry in one command. A buyer may crash at any step. Break it, or claim that a crash cannot.",
		Config:  play.Config{Strategy: "setnx-ttl", Events: []explore.Event{explore.Crash}},
		Nobody:  true,
		Open:    true,
		Minutes: 4,
		Thought: "A dead holder leaves its key, and the key runs out. What about a buyer who dies inside its transaction?",
		Deed: "Crash the holder at the worst places: just after SET, between UPDATE and INSERT, before DEL. See each time what the " +
			"other can still do.",
		Learned: "A crash alone does not break it: the lease runs out, and the database rolls back what was not committed. What breaks " +
			"it is a holder that lives and is late, which is the next level.",
		Source: "Redis documentation, SET, \"Patterns\"; Gray and Cheriton, \"Leases\", SOSP 1989",
	}
}
