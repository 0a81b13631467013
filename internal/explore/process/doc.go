// Package process runs a program in a network of its own, and observes it from outside: it reports whether all threads
// of the program's processes sleep.
//
//	explorer -- keeper of a Network: network namespace, PID namespace
//	              `-- keeper of a Program: PID namespace -- sh, node, python, ...
//
// A keeper is a process that starts the program and ends it. It is this binary, started again, so main and TestMain
// must call [Keep] first. It is the first process of a PID namespace (pid_namespaces(7)), so the kernel kills all
// processes of the namespace with it, including daemons. A keeper ends when its explorer ends.
//
// A program sees the normal system, except for its network, its process ids, and operations that need root.
// Without root it runs in a user namespace (user_namespaces(7)) under its own user id.
//
// The report is exact for everything that the kernel shows about threads. The kernel does not show alarms, time
// limits of sockets (SO_RCVTIMEO), and the work of io_uring. Asleep ignores timers that are files (timerfd).
package process

import "io"

// A Command describes the start of a program.
type Command struct {
	Line string    // for `sh -c`; a single plain command replaces the shell
	Dir  string    // working directory; empty: the current one
	Env  []string  // NAME=value; nil: the environment of the explorer
	Log  io.Writer // receives stdout and stderr; nil: discarded
	// PID is the process id of the first process, as the program sees it; 0: any. The kernel may assign a slightly
	// higher id, or any id if it does not let this process choose.
	PID int
}
