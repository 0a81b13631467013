// Package schedule defines the types that a search and a runner exchange: a choice, the point at which
// it is made, the end of a schedule, and the replay string.
//
//	search -- Runner.Run(chooser) --> run: one schedule on real servers
//	search <-- chooser(point) ------- run: the possible choices; which one?
//	search <-- Ended ---------------- run
//
// It knows no database, no Redis and no goroutine.
package schedule
