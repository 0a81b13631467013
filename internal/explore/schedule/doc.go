// Package schedule has the words in which a search and the thing that runs its
// schedules talk to each other: a choice, the point at which it is made, how a
// schedule ended, and the replay line.
//
//	search -- Runner.Run(chooser) --> run: one schedule on real servers
//	search <-- chooser(point) ------- run: these choices there are; which one?
//	search <-- Ended ---------------- run
//
// It knows no database, no Redis and no goroutine.
package schedule
