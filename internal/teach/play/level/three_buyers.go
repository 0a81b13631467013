package level

import (
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func threeBuyers() Level {
	return Level{
		Name:    "three-buyers",
		Title:   "Three buyers, two units",
		Task:    "Three buyers and two units: sell three.",
		Config:  play.Config{Strategy: "none", Buyers: 3, Stock: 2},
		Goal:    verdict.Oversold,
		Minutes: 4,
		Thought: "How many of the three must go wrong for a third sale? The others may simply buy.",
		Deed:    "Let two of them read the same stock. Whoever comes last needs to find a unit that is sold already.",
		Learned: "Two buyers who meet are enough, however many there are: the third only made it visible. Of 105 real concurrency bugs " +
			"about 92 % could be triggered by the order of no more than four memory accesses, which is why a search with two buyers " +
			"finds so much.",
		Source: "Lu, Park, Seo, Zhou, \"Learning from Mistakes: A Comprehensive Study on Real World Concurrency Bug Characteristics\", " +
			"ASPLOS 2008, abstract",
	}
}
