package redisscript

import (
	"testing"

	"github.com/oversell/oversell/internal/expect"
)

func TestParse(t *testing.T) {
	for source, want := range map[string]Description{
		"-- delete if mine\n--\n-- Role: release\n-- Lock: KEYS[2]\n-- Refused: 0 -1\nreturn 0\n": {
			Name: "delete if mine", Role: Release, Lock: 2, Refused: []string{"0", "-1"},
		},
		"-- Loads the stock\n-- Role: change\nreturn redis.call('GET', KEYS[1]) -- Lock: KEYS[1]\n": {
			Name: "Loads the stock", Role: Change,
		},
		"-- has no role\nreturn 1\n": {Name: "has no role"},
	} {
		want.SHA = SHA(source)
		expect.DeepEqual(t, Parse(source), want, source)
	}
}

// TestLockOf: a script without a lock has none, even if it has keys.
func TestLockOf(t *testing.T) {
	for lock, want := range []string{"", "first", "second", ""} {
		if got := (Description{Lock: lock}).LockOf([]string{"first", "second"}); got != want {
			t.Errorf("Lock %d: %q, want %q", lock, got, want)
		}
	}
}
