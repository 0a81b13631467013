// Package explore runs a lock strategy's real code on a real database and Redis, through every order in
// which the commands of a few buyers can reach the servers.
//
//	Explorer.Search: frontier, reduction, shrinking
//	    |  schedule.Runner: "run this schedule with this chooser"
//	own.Runner
//	    |
//	buyer 1 -> Strategy.Buy -> SQL driver, Redis client -> gate \
//	                                                            scheduler: one command at a time
//	buyer 2 -> Strategy.Buy -> SQL driver, Redis client -> gate /
//
// Each buyer has connections and an instance of the strategy of its own, like a separate process. So
// the connection identifies the buyer, even for a renewal or a worker, whose context does not. With
// Config.Shared all buyers share one instance, and the context identifies the buyer.
//
// A schedule is a list of choices, and each run begins at the restored state. The search recognizes a
// state by a hash of everything that determines the rest of the schedule, and explores what follows
// once (graph). If states cannot be computed, it runs each schedule to its end (tree). Both rely on a
// schedule running the same way again. If one does not, that is an error (ErrHarness), never a result.
//
// The search knows neither SQL nor Redis nor goroutines. It does not cover what two servers do at the
// same moment, nor orders within one statement; docs/design/explorer.md lists the limits.
package explore
