// Package require ends a test whose preparation fails.
package require

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// NoError ends the test with t.Fatal unless err is nil. The report begins with the parameter `about`. Call
// NoError from the test's own goroutine.
func NoError(t testing.TB, err error, about ...any) {
	t.Helper()
	if err == nil {
		return
	}
	if len(about) == 0 {
		t.Fatal(err)
	}
	t.Fatalf("%s: %v", strings.TrimSuffix(fmt.Sprintln(about...), "\n"), err)
}

// patience is far above the time that any step takes, even on a busy machine with the race detector.
const patience = 2 * time.Minute

// Eventually waits until `done` returns true. It ends the test if that takes longer than two minutes.
func Eventually(t testing.TB, event string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, event)
		}
	}
}
