//go:build !unix

package web

// OpenFiles returns 0: this system has no limit to query.
func OpenFiles() int { return 0 }
