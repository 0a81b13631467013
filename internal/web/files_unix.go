//go:build unix

package web

import (
	"math"
	"syscall"
)

// OpenFiles is how many files this process may have open; 0 when that is not known. Go
// raises the soft limit to the hard one when it starts.
func OpenFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) // signed on some systems
}
