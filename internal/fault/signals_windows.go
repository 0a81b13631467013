package fault

import "syscall"

// Windows stops no process by a signal: the fault fails there, as the servers
// do that it would strike (localserver, process_windows.go).
const (
	sigStop = syscall.Signal(0x13)
	sigCont = syscall.Signal(0x12)
)
