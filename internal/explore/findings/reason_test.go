package findings

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
)

// TestPolls: a search whose runs were discarded points to --app-check if the program sends commands by itself.
func TestPolls(t *testing.T) {
	for _, polls := range []bool{true, false} {
		why := Unproven(explore.Report{Void: 2, Polls: polls})
		if strings.Contains(why, "--app-check prints the line `ignore:`") != polls {
			t.Errorf("polls %v: %s", polls, why)
		}
	}
}
