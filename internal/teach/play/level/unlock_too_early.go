package level

import (
	"github.com/oversell/oversell/internal/teach/play"
)

func unlockTooEarly() Level {
	return Level{
		Name:    "unlock-too-early",
		Title:   "Unlocked a moment too early",
		Task:    "All buyers are in one process and share a good lock. Its holder frees it before its COMMIT. Sell the unit twice, or claim that nobody can.",
		Config:  play.Config{Strategy: "early-unlock", Shared: true},
		Open:    true,
		Minutes: 4,
		Thought: "What does the next buyer read between the release and the COMMIT?",
		Deed:    "Take the first buyer to where it has freed the lock and not committed. Then let the other read.",
		Learned: "The lock covered the statements and not the COMMIT, so the next holder read the stock from before it. A lock has to " +
			"outlive the transaction that it protects; the annotation that opens the transaction outside the lock makes this the " +
			"most repeated real bug.",
		Source: "spring-framework issue 23549; Redisson issue 2183 (a lock inside @Transactional)",
	}
}
