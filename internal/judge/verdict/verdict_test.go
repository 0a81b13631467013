package verdict

import "testing"

func TestKeeps(t *testing.T) {
	for _, c := range []struct {
		promise, got Verdict
		want         bool
	}{
		{Holds, Holds, true},
		{Holds, Oversold, false},
		{Holds, Inconclusive, false},
		{Oversold, Oversold, true},
		{Oversold, Drifted, true},
		{Drifted, Oversold, true},
		{Oversold, Holds, false},
		{Oversold, Leaked, false},
		{Oversold, Inconclusive, false},
		{Stalled, Stalled, true},
		{Stalled, Holds, false},
	} {
		if got := c.promise.Keeps(c.got); got != c.want {
			t.Errorf("%s keeps %s: %v, want %v", c.got, c.promise, got, c.want)
		}
	}
}

// TestNonlinearizable: it breaks any promise, even a missing one, and does not count as a promised
// violation of stock and records.
func TestNonlinearizable(t *testing.T) {
	if Holds.Keeps(Nonlinearizable) || Oversold.Keeps(Nonlinearizable) || !Oversold.Misses(Nonlinearizable) || Holds.Misses(Nonlinearizable) || !Nonlinearizable.NeverChance() {
		t.Error("nonlinearizable keeps a promise, or passes where there is none")
	}
}
