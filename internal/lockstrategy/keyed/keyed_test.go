package keyed_test

import (
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy/keyed"
)

// TestMap: a value is created once, shared by its users, and removed after the last one.
func TestMap(t *testing.T) {
	var m keyed.Map[string, *int]
	made := 0
	fresh := func() *int { made++; return new(int) }
	first := m.Use("a", fresh)
	if again := m.Use("a", fresh); again != first || made != 1 {
		t.Errorf("the second user got another value; %d were made, want 1", made)
	}
	m.Use("b", fresh)
	expect.Equal(t, m.Len(), 2, "keys in use")
	if m.Release("a") {
		t.Error("a was dropped while it had a user")
	}
	if got, used := m.Get("a"); !used || got != first {
		t.Error("a is not found while it has a user")
	}
	if !m.Release("a") {
		t.Error("a was kept without a user")
	}
	if _, used := m.Get("a"); used {
		t.Error("a is found without a user")
	}
	for key := range m.All() {
		expect.Equal(t, key, "b", "the key in use")
	}
	if another := m.Use("a", fresh); another == first {
		t.Error("a came back with its old value")
	}
}

// TestReleaseUnused: one Release too many would remove a value that another user needs.
func TestReleaseUnused(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	var m keyed.Map[string, int]
	m.Use("a", func() int { return 1 })
	m.Release("a")
	m.Release("a")
}
