package judge

import "syscall"

// mostMemory is what the program may ask for: code that fills memory without end must not
// take the machine with it. The race detector alone reserves more than there is.
const mostMemory = 8 << 30

func boundMemory() {
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: mostMemory, Max: mostMemory})
}
