package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func oneNodeRestarts() Level {
	return Level{
		Name:  "one-node-restarts",
		Title: "Break Redlock with one restart",
		Task: "Three independent nodes, and a lock counts when two of them have granted it. One node may restart empty, once. Sell " +
			"the unit twice.",
		Config:  play.Config{Strategy: "redlock", Events: []explore.Event{explore.Forget}},
		Goal:    verdict.Oversold,
		Minutes: 10,
		Thought: "Two majorities of three nodes share at least one node. Which one, and what if it forgets?",
		Deed: "Let the first buyer be granted a, and one more node. Have a node that granted forget, and let the other buyer reach " +
			"that node and the one that the first has not reached yet.",
		Learned: "Two majorities meet in one node, and that node has to remember; a restart without fsync always makes it vote twice. " +
			"The remedy that its author gives is to keep a restarted node out for longer than any lease: a promise about time " +
			"again.",
		Source: "Redis documentation, \"Distributed Locks with Redis\", section \"Performance, Crash Recovery and fsync\"; Kleppmann, \"How " +
			"to do distributed locking\", 2016",
	}
}
