package wiretest_test

import (
	"testing"

	"github.com/oversell/oversell/internal/explore/wire/wiretest"
)

// TestDifference: a changed, missing or additional byte is found.
func TestDifference(t *testing.T) {
	for got, found := range map[string]bool{"ab": false, "ac": true, "a": true, "abc": true, "": true} {
		if said := wiretest.Difference([]byte(got), []byte("ab")); (said != "") != found {
			t.Errorf("%q: %q", got, said)
		}
	}
}
