package judge

import (
	"runtime/debug"
	"syscall"
)

// mostMemory is the memory limit of the program, so that code that fills memory does not stop the
// machine. A correct solution needs less than a tenth of it.
const mostMemory = 2 << 30

func boundMemory() {
	debug.SetMemoryLimit(mostMemory / 4 * 3) // collects garbage before it alone reaches the limit
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: mostMemory, Max: mostMemory})
}
