package retry

import "testing"

// TestPolls: only a command that would get the same answer again is held back.
func TestPolls(t *testing.T) {
	read := Try{Name: "GET a", Answer: "1", Server: "redis"}
	failed := Try{Name: "SET lock", Answer: "nil", Server: "redis"}
	wrote := Try{Name: "SET b", Answer: "OK", Server: "redis", Changed: true}
	other := Try{Name: "GET a", Answer: "2", Server: "redis"}
	times := func(n int, tries ...Try) (all []Try) {
		for range n {
			all = append(all, tries...)
		}
		return all
	}
	for _, c := range []struct {
		name    string
		tries   []Try
		command string
		others  int // changes by other buyers since
		polls   bool
	}{
		{"the first command", nil, "SET lock", 0, false},
		{"the second try", times(1, failed), "SET lock", 0, false},
		{"the fourth try", times(3, failed), "SET lock", 0, false},
		{"the fifth try", times(4, failed), "SET lock", 0, true},
		{"another has changed something since", times(4, failed), "SET lock", 1, false},
		{"another command", times(4, failed), "GET a", 0, false},
		{"a read for the fifth time", times(4, read), "GET a", 0, true},
		{"a read whose answers differ", append(times(3, read), other), "GET a", 0, false},
		{"what writes", times(6, wrote), "SET b", 0, false},
		{"two commands for the fifth time", times(4, read, failed), "GET a", 0, true},
		{"two commands for the fourth time", times(3, read, failed), "GET a", 0, false},
		{"two commands of which one writes", times(6, read, wrote), "GET a", 0, false},
		{"two commands whose answers differ", append(times(3, read, failed), other, failed), "GET a", 0, false},
		{"two commands, and another has changed something", times(4, read, failed), "GET a", 1, false},
		{"three commands for the fifth time", times(4, read, failed, Try{Name: "GET c", Server: "redis"}), "GET a", 0, true},
	} {
		if got := polls(c.tries, c.command, 4, func(string) int { return c.others }); got != c.polls {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestGaveUp: a waiting buyer gives up if it changes something before any other buyer has.
func TestGaveUp(t *testing.T) {
	for _, c := range []struct {
		name                   string
		tries                  int
		released, changes, say bool
	}{
		{"goes on", 7, false, true, true},
		{"is refused", 7, false, false, false},
		{"got the lock", 7, true, true, false},
		{"did not wait for long", 4, false, true, false},
	} {
		p := NewPolling(100, 4, Routine{})
		for range c.tries {
			p.Tried(2, Try{Name: "SET lock NX", Answer: "nil", Server: "redis"})
		}
		if c.released {
			p.ChangedBy(1, "redis")
		}
		p.Tried(2, Try{Name: "SELECT stock", Answer: "1", Server: "mysql"})
		p.Tried(2, Try{Name: "INSERT", Answer: "1 changed", Server: "mysql", Changed: c.changes})
		want := ""
		if c.say {
			want = "a buyer gave up after 7 tries and went on with INSERT, which was not explored in every order: add --tries 7"
		}
		if p.GaveUp != want {
			t.Errorf("%s: %q, want %q", c.name, p.GaveUp, want)
		}
	}
}

// TestRoutine: commands that a buyer repeats alone do not count as retries in a search, up to a limit.
func TestRoutine(t *testing.T) {
	const command = "SELECT write_date FROM shipments WHERE id = 7"
	for _, c := range []struct {
		name            string
		alone, searched int // number of equal commands before
		polls           bool
	}{
		{"as often as alone", 5, 5, false},
		{"a few times more than alone", 5, 7, false},
		{"more often than alone by the limit", 5, 8, true},
		{"alone fewer times than the limit", 4, 4, true},
		{"alone endlessly", 100, 4, true},
	} {
		p := NewPolling(4, 4, Routine{})
		p.Alone = true
		again := func(buyer, n int) {
			for range n {
				p.Tried(buyer, Try{Name: command, Answer: "1", Server: "postgres"})
			}
		}
		again(1, c.alone)
		p.Alone = false
		again(2, c.searched)
		if got := p.Polls(2, command); got != c.polls {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
