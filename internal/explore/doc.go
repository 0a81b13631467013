// Package explore runs a lock strategy's real code on a real database and Redis, in every order in which the commands
// of a few buyers can reach the servers.
//
//	Explorer.Search: frontier, reduction, shrinking
//	    |  schedule.Runner: "run this schedule with this chooser"
//	own.Runner
//	    |
//	buyer 1 -> Strategy.Buy -> SQL driver, Redis client -> gate \
//	                                                            scheduler: one command at a time
//	buyer 2 -> Strategy.Buy -> SQL driver, Redis client -> gate /
//
// Each buyer has its own connections and its own instance of the strategy, like a separate process. So the connection
// identifies the buyer. (The context of a renewal or a worker does not.) With Config.Shared, all buyers share one
// instance, and the context identifies the buyer.
//
// A schedule is a list of choices, and each run begins in the same initial state. The search identifies a state by
// a hash of everything that determines the rest of the schedule, and explores each continuation once (type graph). If
// states cannot be computed, it runs each schedule to its end (type tree). Both need schedules that repeat
// exactly. If a schedule does not, the search returns ErrHarness.
//
// The search does not depend on SQL, Redis or goroutines. It does not explore actions of two servers at the same
// moment, or interleavings within one statement; docs/design/explorer.md lists the limits.
package explore
