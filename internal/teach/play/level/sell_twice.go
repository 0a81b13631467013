package level

import (
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func sellTwice() Level {
	return Level{
		Name:    "sell-twice",
		Title:   "Sell one unit twice",
		Task:    "One unit is on sale, and two buyers want it. Sell it to both.",
		Config:  play.Config{Strategy: "none"},
		Goal:    verdict.Oversold,
		Minutes: 3,
		Thought: "Each buyer reads the stock, checks it, and writes the number that it has computed. Between which two of its steps can " +
			"what it has read become untrue?",
		Deed: "Let one buyer read the stock and no more. Then let the other buy, to the end. The first still believes what it has " +
			"read.",
		Learned: "Both buyers computed from one reading, and the later write covered the earlier one: a lost update. No statement was " +
			"wrong by itself; the gap between the read and the write was.",
		Source: "Berenson et al., \"A Critique of ANSI SQL Isolation Levels\", SIGMOD 1995, section 4.1, P4 (Lost Update)",
	}
}
