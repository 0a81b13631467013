package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func theBestOfOneNode() Level {
	return Level{
		Name:    "the-best-of-one-node",
		Title:   "As good as one Redis gets",
		Task:    "SET NX PX, a token, a release by script: all that one Redis can give. The lease may run out. Sell the unit twice.",
		Config:  play.Config{Strategy: "redis", Events: []explore.Event{explore.Expire}},
		Goal:    verdict.Oversold,
		Minutes: 4,
		Thought: "What was mended is the release. What was never the release at all?",
		Deed:    "As with the slow section: past the read, expire, and the other buys.",
		Learned: "Token and script keep a late holder from freeing the lock of another, and not from writing to the database. The lock " +
			"cannot know that its holder still writes; only what is written to can.",
		Source: "Redis documentation, \"Distributed Locks with Redis\", section \"Correct Implementation with a Single Instance\"; " +
			"Kleppmann, \"How to do distributed locking\", 2016",
	}
}
