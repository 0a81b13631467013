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
