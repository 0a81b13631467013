package level

import (
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func secondProcess() Level {
	return Level{
		Name:    "second-process",
		Title:   "A second process",
		Task:    "Each buyer is served by a process of its own, and each process has a mutex. Sell the unit twice.",
		Config:  play.Config{Strategy: "mutex"},
		Goal:    verdict.Oversold,
		Minutes: 2,
		Thought: "Who is kept out by a lock in the memory of one process?",
		Deed:    "Play it as if there were no lock: both read before one writes.",
		Learned: "A mutex orders the goroutines of one process and nobody else. A second instance behind the load balancer has a second " +
			"mutex, and the two know nothing of each other.",
		Source: "The Go Memory Model, section \"Locks\", https://go.dev/ref/mem#locks",
	}
}
