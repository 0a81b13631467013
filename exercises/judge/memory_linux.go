package judge

import (
	"runtime/debug"
	"syscall"
)

// mostMemory is the memory limit of this program, in bytes, so that a learner's code that fills memory does
// not stop the machine. A correct solution needs less than a tenth of it.
const mostMemory = 2 << 30

func boundMemory() {
	debug.SetMemoryLimit(mostMemory / 4 * 3) // the garbage collector starts early enough that garbage alone does not reach the limit
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: mostMemory, Max: mostMemory})
}
