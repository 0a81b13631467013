package level

import "github.com/oversell/oversell/internal/teach/play"

func beginAndCommit() Level {
	return Level{
		Name:    "begin-and-commit",
		Title:   "Does a transaction help?",
		Task:    "Read and write now stand in one transaction. Sell the unit twice on this database, or claim that nobody can.",
		Config:  play.Config{Strategy: "transaction"},
		Nobody:  true,
		Open:    true,
		Minutes: 5,
		Thought: "A transaction is all or nothing. Does that say what it may have read, and what others may have written since?",
		Deed: "Let both buyers read inside their transactions, then have one write and commit. Watch what the database answers when " +
			"the other wants to write.",
		Learned: "On SQLite nobody can: a transaction whose reading is old may not write (SQLITE_BUSY_SNAPSHOT), and the buyer starts " +
			"again. On MySQL and PostgreSQL, at the isolation that they begin with, the same code sells twice: BEGIN is no lock.",
		Source: "SQLite, \"Result and Extended Result Codes\", SQLITE_BUSY_SNAPSHOT; Berenson et al., SIGMOD 1995, section 4.2; " +
			"PostgreSQL 15 manual, 13.2.1",
	}
}
