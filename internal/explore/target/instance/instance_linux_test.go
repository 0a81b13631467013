package instance

import (
	"fmt"
	"testing"
)

// TestTail: the last five non-empty lines, joined in one line.
func TestTail(t *testing.T) {
	printed := &tail{}
	if got := printed.last(); got != "" {
		t.Errorf("nothing was printed, and it says %q", got)
	}
	for n := range 9 {
		fmt.Fprintf(printed, "line\t%d\r\n\n", n)
	}
	if got, want := printed.last(), "; it printed: line 4 | line 5 | line 6 | line 7 | line 8"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
