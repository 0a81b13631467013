package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/teach/play"
)

func lockTheRow() Level {
	return Level{
		Name:  "lock-the-row",
		Title: "Prove: nobody breaks the row lock",
		Task: "SELECT ... FOR UPDATE, then write and commit. Everything that can be struck may be. Try it, and then have it proved " +
			"that nobody can break this one.",
		Config:  play.Config{Strategy: "for-update", Events: []explore.Event{explore.Expire, explore.Crash, explore.Forget, explore.Renew, explore.Timeout}},
		Nobody:  true,
		Minutes: 4,
		Thought: "Who holds this lock: a process, or a transaction? What happens to it when its owner dies?",
		Deed: "Take one buyer into its transaction and see what the other waits for. Then claim (p), and the explorer runs every " +
			"order.",
		Learned: "The database grants the lock, sees the write and ends both with one COMMIT, so there is no moment in between to break. " +
			"On SQLite it is BEGIN IMMEDIATE, a lock on the whole database; MySQL and PostgreSQL lock the row.",
		Source: "MySQL 8.0 Reference Manual, 17.7.2.4, \"Locking Reads\"; PostgreSQL 15 manual, 13.3.2, \"Row-Level Locks\"; SQLite, " +
			"\"Transactions\", 2.2, \"DEFERRED, IMMEDIATE, and EXCLUSIVE transactions\"",
	}
}
