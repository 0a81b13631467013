package fault

import (
	"errors"
	"fmt"
	"testing"
)

// TestInjected: buyers that stalled during an injection break a promise, unless this process mostly
// had no processor. Then the fault proves nothing.
func TestInjected(t *testing.T) {
	const starved = "this process got no processor for 4.0 of 5.0 s"
	stalled := fmt.Errorf("inject: %w", &stalledError{what: "no buyer was served"})
	harness := errors.New("no such table")
	for _, c := range []struct {
		name            string
		err             error
		starved         string
		stalled, missed string
		want            error
	}{
		{"stalled", stalled, "", "no buyer was served", "", nil},
		{"stalled on a busy machine", stalled, starved, "", "no buyer was served, and " + starved, nil},
		{"missed on a busy machine", errNoHolder, starved, "", errNoHolder.Error(), nil},
		{"a failure of the harness on a busy machine", harness, starved, "", "", harness},
		{"no error", nil, starved, "", "", nil},
	} {
		var f Facts
		if err := f.injected(c.err, c.starved); !errors.Is(err, c.want) || f.Stalled != c.stalled || f.Missed != c.missed {
			t.Errorf("%s: stalled %q, missed %q, %v", c.name, f.Stalled, f.Missed, err)
		}
	}
}
