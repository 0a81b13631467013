// Package process has a foreign program as the system sees it: processes in a network of
// their own, and whether all of their threads sleep.
//
//	explorer -- keeper of a Space: network namespace, PID namespace
//	              `-- keeper of a Program: PID namespace -- sh, node, python, ...
//
// A keeper is this binary, started again: main must call [Keep] first, and so must TestMain.
// It is the first process of a PID namespace (pid_namespaces(7)), so the kernel kills
// whatever runs in there with it, daemons too. A keeper ends when its explorer does.
//
// What a program sees is as outside, but for its network, its process ids, and what needs
// root: not root, it runs in a user namespace (user_namespaces(7)) under its own user id.
//
// At rest is exact for what the kernel shows of threads. It does not show timers that are
// files (timerfd), alarms, time limits of sockets (SO_RCVTIMEO), and what io_uring does.
package process

import "io"

// A Command is how a program is started.
type Command struct {
	Line string    // for `sh -c`, which is replaced by the program where the line is one plain command
	Dir  string    // where it runs; empty: here
	Env  []string  // NAME=value; nil: as the explorer's
	Log  io.Writer // for what it writes to stdout and stderr; nil: nobody
}
