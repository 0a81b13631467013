package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/teach/play"
)

func redisForgets() Level {
	return Level{
		Name:  "redis-forgets",
		Title: "Redis forgets",
		Task: "A watchdog renews the lease for as long as the holder lives, so no lease runs out by itself. Redis may forget its " +
			"keys: a restart, or a failover to a replica that lacks them. Sell the unit twice, or claim that nobody can.",
		Config:  play.Config{Strategy: "watchdog", Events: []explore.Event{explore.Forget}},
		Open:    true,
		Minutes: 4,
		Thought: "What does a watchdog renew when the key is gone? And who notices?",
		Deed:    "Take the holder past its read, have Redis forget (e), and let the other take the lock that is free again.",
		Learned: "Replication in Redis is asynchronous, so a failover can lose the key while its holder works on. A watchdog cures " +
			"slowness and not forgetting.",
		Source: "Redis documentation, \"Distributed Locks with Redis\", section \"Why Failover-based Implementations Are Not Enough\"; " +
			"Redisson documentation, lockWatchdogTimeout",
	}
}
