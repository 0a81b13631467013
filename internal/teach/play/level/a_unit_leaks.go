package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func aUnitLeaks() Level {
	return Level{
		Name:  "a-unit-leaks",
		Title: "A unit that nobody can buy",
		Task: "A counter in Redis admits buyers, and only then does a buyer write to the database. A buyer may crash. Have a unit " +
			"left in the database that is sold out for everybody.",
		Config:  play.Config{Strategy: "redis-decr", Events: []explore.Event{explore.Crash}},
		Goal:    verdict.Leaked,
		Minutes: 4,
		Thought: "The unit is taken from the counter before it is sold. Who puts it back?",
		Deed:    "Crash a buyer between its DECRBY and its COMMIT, when the other has found the counter empty.",
		Learned: "Two stores changed in two steps, and the process died in between: the unit is gone from the one and unsold in the " +
			"other. Nothing is oversold, and money is lost all the same; only a reconciliation finds it.",
		Source: "Redis documentation, INCR, \"Pattern: Counter\"; Kleppmann, Designing Data-Intensive Applications, 2017, chapter 11, " +
			"\"Keeping Systems in Sync\" (dual writes)",
	}
}
