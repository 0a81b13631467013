// Package schedule defines the types that a search and a runner exchange. They are a choice, the point of a
// schedule at which the search makes a choice, the end of a schedule, and the replay string.
//
//	search -- Runner.Run(chooser) --> run: one schedule on real servers
//	search <-- chooser(point) ------- run: the possible choices; which one?
//	search <-- Ended ---------------- run
//
// The package depends on no database, Redis or goroutine.
package schedule
