// Package target has the buyers of a program under test as a subject of package conduct: a program
// in any language, as it is.
//
//	explore.Explorer: frontier, reduction, shrinking
//	    |  schedule.Runner
//	Runner: what outlives schedules - the fleet of instances, the user's servers
//	    |
//	run: the subject - requests, choices, judgement; settling takes it to the next standstill
//	    |
//	floor: what stands at the gates and what is on its way
//	    |                                   |
//	wire.Conn, a gate a connection      process.Program, its threads
//
// Each buyer has an instance of the program, in a network of its own, in which the gates
// stand where the program looks for its servers. So a command's connection identifies its buyer.
// Where all buyers share one instance, the buyer follows from what each would send next. If it
// does not, the run is void, see whose_linux.go. A request is a step there, since a later buyer
// may find a mutex of the process free.
//
// No step is decided by time. A run in which something came that the runner had not waited
// for is void (schedule.Void): it counts as nothing.
package target
