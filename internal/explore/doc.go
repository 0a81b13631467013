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
// identifies the buyer. A context would not: a lock renewal or a background worker runs without the buyer's context.
// With Config.Shared, all buyers share one instance, and the context identifies the buyer.
//
// A schedule is a list of choices, and each run begins in the same initial state. The search computes a hash of
// everything that determines the rest of the schedule. From two states with equal hashes, it explores the continuation
// once (type graph). If it cannot compute states, it runs each schedule to its end (type tree). In both cases, equal
// choices must lead to equal runs. Otherwise the search returns ErrHarness.
//
// The search does not depend on SQL, Redis or goroutines. It does not explore two servers that act at the same moment,
// or steps between the parts of one statement. docs/design/explorer.md lists the limits.
package explore
