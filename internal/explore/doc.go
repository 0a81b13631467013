// Package explore runs a lock strategy's real code, on a real database and a
// real Redis, through every order in which the commands of a few buyers can
// reach the servers.
//
//	Explorer.Search: frontier, reduction, shrinking
//	    |  schedule.Runner: "run this schedule with this chooser"
//	own.Runner
//	    |
//	buyer 1 -> Strategy.Buy -> SQL driver, Redis client -> gate \
//	                                                            scheduler: one command at a time
//	buyer 2 -> Strategy.Buy -> SQL driver, Redis client -> gate /
//
// Each buyer has connections and an instance of the strategy of its own, as if
// it were a process of its own. So a command's connection says whose it is, also
// for a renewal or a worker, whose context does not say. With Config.Shared all
// buyers share one instance, and the context says it.
//
// A schedule is a list of choices, and each run begins at the restored state. No state
// is stored, but known again: by a hash of all that what comes can follow from (graph),
// so that it is explored once. Where nobody knows a state each schedule is run to its end
// (tree). Both rest on a schedule running the same way again; one that does not is an
// error (ErrHarness), never a result.
//
// The search knows neither SQL nor Redis nor goroutines. What two servers do in the
// same instant, and orders within one statement, are beyond it; docs/design/explorer.md has
// the limits.
package explore
