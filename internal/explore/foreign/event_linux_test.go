package foreign

import (
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// TestEventNames: the names are those of the events.
func TestEventNames(t *testing.T) {
	if !slices.EqualFunc(allEvents(), EventNames(), func(e event, name schedule.Event) bool { return e.name() == name }) {
		t.Errorf("%v are not the names of %v", EventNames(), allEvents())
	}
}
