package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/teach/play"
)

func oneStatement() Level {
	return Level{
		Name:  "one-statement",
		Title: "Prove: nobody breaks one statement",
		Task: "UPDATE ... SET amount = amount - 1 WHERE amount >= 1: no lock in the code at all. Everything that can be struck may " +
			"be. Have it proved that nobody can break this one.",
		Config:  play.Config{Strategy: "conditional", Events: []explore.Event{explore.Expire, explore.Crash, explore.Forget, explore.Renew, explore.Timeout}},
		Nobody:  true,
		Minutes: 4,
		Thought: "Where is the gap between the read and the write now?",
		Deed:    "Look for a moment between check and write; if you find none, claim (p).",
		Learned: "The check and the write are one statement, which the database runs on the newest row. What took leases, tokens and " +
			"majorities to approach was one line of SQL, as long as stock and records are in one database.",
		Source: "MySQL 8.0 Reference Manual, 17.7.3, \"Locks Set by Different SQL Statements in InnoDB\"; PostgreSQL 15 manual, 13.2.1, " +
			"\"Read Committed Isolation Level\"",
	}
}
