package promisetest_test

import (
	"os"
	"testing"

	"github.com/oversell/oversell/internal/explore"
)

// TestMain runs the searches on one processor, as shop explore does: that is faster,
// and leaves the other to the test binary beside this one.
func TestMain(m *testing.M) {
	undo := explore.OneProcessor(false)
	code := m.Run()
	undo()
	os.Exit(code)
}
