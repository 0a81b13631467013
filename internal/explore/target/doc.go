// Package target is a subject of package conduct: the buyers of a program under test, in any language,
// without changes to the program.
//
//	explore.Explorer: frontier, reduction, shrinking
//	    |  schedule.Runner
//	Runner: outlives schedules; with package session it keeps the programs ready
//	    |
//	run: one schedule - choices, delivery, judgement
//	    |  rest.Settling: brings it to the next standstill
//	gates, backend, client, instance: the commands, the servers, the buyers, the programs
//	    |                                   |
//	wire.Conn, one gate per connection  process.Program, its threads
//
// Four packages have similar names. Package app reads the file that describes the user's shop. Package program
// explores it, for the commands. Package process sees its processes and threads. This package runs its schedules.
//
// Each buyer has an instance of the program in a network of its own. The gates listen there at the
// addresses of the real servers, so a command's connection identifies its buyer. If all buyers share
// one instance, the runner infers the buyer from the next command of each (whose_linux.go). A request is
// then a step too, since a later buyer may find a mutex of the process free.
//
// Time must not decide a step. If a command arrives that the runner did not wait for, or whose buyer it
// cannot infer, the run is void (schedule.Void): it does not count, and is repeated.
package target
