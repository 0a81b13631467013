package rlock

import (
	"os"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
)

// TestScriptsAreDescribed: each script in lua/ has exactly one description.
func TestScriptsAreDescribed(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("lua")
	require.NoError(t, err)
	const shared = 1 // fair.lua is prepended to others
	expect.Equal(t, len(Scripts()), len(files)-shared, "scripts are described")
	seen := map[string]bool{}
	for _, s := range Scripts() {
		if len(s.SHA) != 40 || s.Name == "" || s.Role == "" || strings.HasSuffix(s.Name, ".") {
			t.Errorf("not described: %+v", s)
		}
		if seen[s.SHA] || seen[s.Name] {
			t.Errorf("described twice: %+v", s)
		}
		seen[s.SHA], seen[s.Name] = true, true
	}
}
