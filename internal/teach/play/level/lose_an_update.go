package level

import (
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func loseAnUpdate() Level {
	return Level{
		Name:  "lose-an-update",
		Title: "Lose a sale from the books",
		Task: "Two units are on sale for two buyers, so nobody need go without. All the same, have the books go wrong: two sold, and " +
			"the stock one lower.",
		Config:  play.Config{Strategy: "none", Stock: 2},
		Goal:    verdict.Drifted,
		Minutes: 3,
		Thought: "Both sales are right, and the sum is wrong. Which number does each buyer write into the stock?",
		Deed:    "Have both buyers read 2 before one of them writes.",
		Learned: "Two records, and the stock went from 2 to 1: nothing is oversold yet, and the next customer buys what is not there. " +
			"Answers alone do not show it; the records compared with the stock do.",
		Source: "Berenson et al., \"A Critique of ANSI SQL Isolation Levels\", SIGMOD 1995, section 4.1, history H4",
	}
}
