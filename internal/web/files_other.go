//go:build !unix

package web

// openFiles returns 0: this system has no limit to query.
func openFiles() int { return 0 }
