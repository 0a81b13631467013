package promise_test

import (
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestColumns: each list is a part of Columns, in its order, and Columns has no duplicates.
func TestColumns(t *testing.T) {
	columns := promise.Columns()
	if all := slices.Compact(slices.Sorted(slices.Values(columns))); len(all) != len(columns) {
		t.Errorf("Columns has a condition twice: %v", columns)
	}
	for _, list := range [][]promise.Condition{
		promise.Crowds(), promise.Faults(), promise.Played(), promise.Explorations(), promise.OfTarget(),
	} {
		last := -1
		for _, c := range list {
			at := slices.Index(columns, c)
			if at <= last {
				t.Errorf("%s of %v: column %d, after column %d", c, list, at, last)
			}
			last = at
		}
	}
}

func TestBreaksFrom(t *testing.T) {
	p := promise.BreaksFrom(promise.TwoProcesses)
	if v, ok := p[promise.Rush]; ok {
		t.Errorf("rush: %s, want no promise", v)
	}
	for _, c := range append(promise.Faults(), promise.TwoProcesses) {
		expect.Equal(t, p[c], verdict.Oversold, c)
	}
}
