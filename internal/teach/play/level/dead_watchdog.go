package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/teach/play"
)

func deadWatchdog() Level {
	return Level{
		Name:  "dead-watchdog",
		Title: "A watchdog dies with its master",
		Task: "Redisson's lock: reentrant, renewed by a watchdog, waiters are woken by a message. A buyer may crash. Break it, or " +
			"claim that a crash cannot.",
		Config:  play.Config{Strategy: "redisson", Events: []explore.Event{explore.Crash}},
		Nobody:  true,
		Open:    true,
		Minutes: 5,
		Thought: "A dead holder sends no message. Does anybody wake who waits for it?",
		Deed:    "Have the other buyer wait for the lock, then crash the holder, and see whether the other ever goes on.",
		Learned: "The watchdog dies with its process, so the lease runs out, and a waiter knows from the TTL when to ask again without a " +
			"message. The message makes it fast; the lease makes it live.",
		Source: "Redisson documentation, \"Distributed locks and synchronizers\", Lock; org.redisson.RedissonLock, subscribe and " +
			"tryAcquire",
	}
}
