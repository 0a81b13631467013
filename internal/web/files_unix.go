//go:build unix

package web

import (
	"math"
	"syscall"
)

// openFiles returns how many files this process may open, or 0 if that is unknown. Go raises the
// soft limit to the hard one at the start.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) // signed on some systems
}
