// Package require ends a test whose preparation fails.
package require

import "testing"

// NoError ends the test with t.Fatal unless err is nil. Call it from the test's own goroutine.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
