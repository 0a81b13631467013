// Package process observes a program from outside: it runs the program's processes in a network of
// their own, and reports whether all of their threads sleep.
//
//	explorer -- keeper of a Network: network namespace, PID namespace
//	              `-- keeper of a Program: PID namespace -- sh, node, python, ...
//
// A keeper is this binary, started again: main and TestMain must call [Keep] first. It is the first
// process of a PID namespace (pid_namespaces(7)), so the kernel kills everything in there together with
// the keeper, daemons too. A keeper ends when its explorer ends.
//
// A program sees the same system as outside, except for its network, its process ids, and operations
// that need root. Without root it runs in a user namespace (user_namespaces(7)) under its own user id.
//
// The report is exact for everything that the kernel shows of threads. The kernel does not show timers
// that are files (timerfd), alarms, time limits of sockets (SO_RCVTIMEO), and the work of io_uring.
package process

import "io"

// A Command describes how a program is started.
type Command struct {
	Line string    // for `sh -c`; if the line is one plain command, that command replaces the shell
	Dir  string    // working directory; empty: the current one
	Env  []string  // NAME=value; nil: the explorer's
	Log  io.Writer // receives stdout and stderr; nil: discarded
	// PID is the process id of the first process, as the program sees it; 0: any. The kernel may give the next
	// higher ones instead, or any if it does not let this process choose.
	PID int
}
