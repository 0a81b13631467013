// Package require ends a test whose preparation fails.
package require

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
)

// NoError reports the error as expect.NoError does, and ends the test. Call it from the test's own goroutine.
func NoError(t testing.TB, err error, about ...any) {
	t.Helper()
	if err != nil {
		expect.NoError(t, err, about...)
		t.FailNow()
	}
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
