//go:build unix

package fault

import "syscall"

// A process cannot ignore SIGSTOP.
const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)
