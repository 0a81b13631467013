package rlock

import (
	"os"
	"strings"
	"testing"
)

// TestScriptsAreDescribed: each script of lua/ has a description, and none is
// described twice.
func TestScriptsAreDescribed(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("lua")
	if err != nil {
		t.Fatal(err)
	}
	const shared = 1 // fair.lua is put in front of others
	if got, want := len(Scripts()), len(files)-shared; got != want {
		t.Errorf("%d scripts are described, want %d", got, want)
	}
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
