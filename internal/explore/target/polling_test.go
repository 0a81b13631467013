package target

import "testing"

// TestPolls: only questions that would get the same answer are held back.
func TestPolls(t *testing.T) {
	read := try{name: "GET a", answer: "1", server: "redis"}
	failed := try{name: "SET lock", answer: "nil", server: "redis"}
	wrote := try{name: "SET b", answer: "OK", server: "redis", changed: true}
	other := try{name: "GET a", answer: "2", server: "redis"}
	times := func(n int, tries ...try) (all []try) {
		for range n {
			all = append(all, tries...)
		}
		return all
	}
	for _, c := range []struct {
		name    string
		tries   []try
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
		{"three commands for the fifth time", times(4, read, failed, try{name: "GET c", server: "redis"}), "GET a", 0, true},
	} {
		if got := polls(c.tries, c.command, 4, func(string) int { return c.others }); got != c.polls {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestRoutine: what a buyer repeats alone is no retry of a search, up to a limit.
func TestRoutine(t *testing.T) {
	const command = "SELECT write_date FROM shipments WHERE id = 7"
	for _, c := range []struct {
		name            string
		alone, searched int // equal commands before
		polls           bool
	}{
		{"as often as alone", 5, 5, false},
		{"a few times more than alone", 5, 7, false},
		{"more often than alone by the limit", 5, 8, true},
		{"alone fewer times than the limit", 4, 4, true},
		{"alone endlessly", 100, 4, true},
	} {
		p := polling{often: 4, routine: routine{}, alone: true, changes: map[string]int{}}
		again := func(n int) *pollster {
			b := &pollster{own: map[string]int{}}
			for range n {
				p.tried(b, try{name: command, answer: "1", server: "postgres"})
			}
			return b
		}
		again(c.alone)
		p.alone = false
		if got := p.polls(again(c.searched), command); got != c.polls {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
