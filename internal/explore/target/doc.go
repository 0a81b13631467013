// Package target runs the schedules of a program under test, in any language, without changes to the program. It
// implements conduct.Subject.
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
// Package app reads the file that describes the user's shop. Package program starts the explorations for the commands
// of shop. Package process controls the program's processes and threads.
//
// Each buyer has an instance of the program in a network of its own. There, gates listen at the addresses of the real
// servers, so a command's connection identifies its buyer. If all buyers share one instance, the runner infers the
// buyer of each command (whose_linux.go). Then sending a request is a step, too, since a later buyer may find a mutex
// of the process free.
//
// Time must not decide a step. If an unexpected command arrives, or if the runner cannot infer a command's buyer, the
// run is void (schedule.Void). A void run does not count, and is repeated.
package target
