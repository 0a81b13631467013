// Package target runs schedules of a program that is not ours, in any language, as it is.
//
//	explore.Explorer: frontier, reduction, shrinking
//	    |  schedule.Runner
//	Runner: reset, send each buyer's request, let one command after the other go
//	    |
//	floor: what stands at the gates, what is on its way, has all come to rest?
//	    |                                   |
//	wire.Conn, a gate a connection      process.Program, its threads
//
// Each buyer has an instance of the program, in a network of its own, in which the gates
// stand where the program looks for its servers. So a command's connection says whose it is.
// Where all buyers share one instance, whose it is follows from what each would send next, and
// a run in which it does not is void, see whose_linux.go. A request is a step there, since a
// mutex of the process may be free for who comes later.
//
// No step is decided by time. A run in which something came that the runner had not waited
// for is void (schedule.Void): it counts as nothing.
package target
