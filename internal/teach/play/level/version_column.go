package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/teach/play"
)

func versionColumn() Level {
	return Level{
		Name:  "version-column",
		Title: "A version in the WHERE",
		Task: "No lock at all: read the row with its version, and write WHERE the version is still the same. A buyer may crash, and a " +
			"wait may time out. Break it, or claim that nobody can.",
		Config:  play.Config{Strategy: "optimistic", Events: []explore.Event{explore.Crash, explore.Timeout}},
		Nobody:  true,
		Open:    true,
		Minutes: 5,
		Thought: "How many rows does an UPDATE change whose version is no longer there, and who looks?",
		Deed:    "Have both read the same version, and let one commit. Watch the number of rows that the UPDATE of the other reports.",
		Learned: "The check and the write are one statement, and the number of rows says who has lost; the loser reads again. It is the " +
			"lost update of the first level, noticed.",
		Source: "Kung and Robinson, \"On Optimistic Methods for Concurrency Control\", ACM TODS 6(2), 1981",
	}
}
