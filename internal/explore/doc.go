// Package explore runs a lock strategy's real code, on a real database and a
// real Redis, through every order in which the commands of a few buyers can
// reach the servers.
//
//	buyer 1 -> Strategy.Buy -> SQL driver, Redis client -> gate \
//	                                                            scheduler: one command at a time
//	buyer 2 -> Strategy.Buy -> SQL driver, Redis client -> gate /
//
// Each buyer has connections and an instance of the strategy of its own, as if
// it were a process of its own, so a command's connection says whose it is:
// also that of a renewal or a worker, whose context says nothing. With
// Config.Shared all buyers share one instance, and the context says it.
//
// It is stateless model checking: no state is stored, a schedule is a list of
// choices, and each is run from the restored state. What it rests on is that a
// schedule runs the same way again; one that does not is an error
// (ErrHarness), never a result.
//
// It does not know what two servers do in the same instant, nor orders within
// one statement; docs/explorer.md has the limits.
package explore
