// Package target is a subject of package conduct: the buyers of a program under test, in any language,
// without changes to the program.
//
//	explore.Explorer: frontier, reduction, shrinking
//	    |  schedule.Runner
//	Runner: outlives schedules - the instances of the program, the user's servers
//	    |
//	run: one schedule - requests, choices, judgement; settling brings it to the next standstill,
//	    and repeating repeats what stood there in earlier runs
//	    |
//	gates: the commands at the gates and on their way
//	    |                                   |
//	wire.Conn, one gate per connection  process.Program, its threads
//
// Each buyer has an instance of the program in a network of its own. The gates listen there at the
// addresses of the real servers, so a command's connection identifies its buyer. If all buyers share
// one instance, the runner infers the buyer from the next command of each (whose_linux.go). If it
// cannot, the run is void. A request is then a step too, since a later buyer may find a mutex of the
// process free.
//
// Time decides no step. If a command arrives that the runner did not wait for, the run is void
// (schedule.Void) and does not count.
package target
