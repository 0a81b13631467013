package target

import "testing"

// TestWhoWaits checks the singular and the plural.
func TestWhoWaits(t *testing.T) {
	for _, c := range []struct {
		ids  []int
		want string
	}{
		{[]int{2}, "buyer 2 waits"},
		{[]int{1, 2}, "buyers 1 and 2 wait"},
		{[]int{1, 2, 3}, "buyers 1, 2 and 3 wait"},
	} {
		if got := whoWaits(c.ids); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
