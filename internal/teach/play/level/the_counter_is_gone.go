package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func theCounterIsGone() Level {
	return Level{
		Name:    "the-counter-is-gone",
		Title:   "The counter is gone",
		Task:    "The same counter, and Redis may forget it; the next buyer copies the stock from the database. Sell the unit twice.",
		Config:  play.Config{Strategy: "redis-decr", Events: []explore.Event{explore.Forget}},
		Goal:    verdict.Oversold,
		Minutes: 5,
		Thought: "From where does the counter come back, and what does the database not know yet at that moment?",
		Deed: "Admit one buyer, and before it has written have Redis forget. The other copies the stock as if nobody had been " +
			"admitted.",
		Learned: "A cache that is rebuilt from the database knows nothing of those who were admitted and have not written. The database " +
			"must have the last word: a conditional update refuses what the counter has let through twice.",
		Source: "Redis documentation, \"Redis persistence\" (what a restart may lose); docs/strategies.md, redis-decr and redis-lua",
	}
}
