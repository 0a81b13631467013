package judge

import (
	"runtime/debug"
	"syscall"
)

// mostMemory is what the program may ask for: code that fills memory without end must not
// take the machine with it. A sound solution needs less than a tenth of it.
const mostMemory = 2 << 30

func boundMemory() {
	debug.SetMemoryLimit(mostMemory / 4 * 3) // so that garbage is not what fills it
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: mostMemory, Max: mostMemory})
}
