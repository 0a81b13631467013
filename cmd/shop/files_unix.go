//go:build unix

package main

import (
	"math"
	"syscall"
)

// openFiles is how many files this process may have open; 0 when that is not known. Go
// raises the soft limit to the hard one when it starts.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) // signed on some systems
}
