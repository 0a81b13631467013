package expect

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// reports keeps the errors that a test would show.
type reports struct {
	testing.TB
	all []string
}

func (*reports) Helper()            {}
func (r *reports) Error(all ...any) { r.all = append(r.all, fmt.Sprint(all...)) }

// TestReports: each function is silent about the right result, and names the wrong one.
func TestReports(t *testing.T) {
	t.Parallel()
	var r reports
	Equal(&r, 1, 1)
	DeepEqual(&r, []string{"a"}, []string{"a"})
	NoError(&r, nil)
	ErrorIs(&r, fmt.Errorf("late: %w", context.Canceled), context.Canceled)
	Contains(&r, "apple", "pp")
	if r.all != nil {
		t.Errorf("right results give %q", r.all)
	}
	Equal(&r, 1, 2, "units of", "apple")
	Equal(&r, "a", "b\nc")
	DeepEqual(&r, []int{1}, []int{1, 2})
	NoError(&r, context.Canceled, "close")
	ErrorIs(&r, nil, context.Canceled)
	Contains(&r, "apple", "pear")
	want := []string{
		"units of apple: got 1, want 2", "got \"a\", want \nb\nc\n", "got [1], want [1 2]", "close: context canceled", "got <nil>, want context canceled", `"pear" is missing in "apple"`,
	}
	if !slices.Equal(r.all, want) {
		t.Errorf("got %q, want %q", r.all, want)
	}
}
