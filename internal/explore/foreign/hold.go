package foreign

import "slices"

// A buyer who tries in vain tries again: a lock that is not free, a row that is not there
// yet. The same question gets the same answer until somebody else has changed the server,
// and there would be as many orders as one can wait tries for. So such a command is held
// back until then, or until nobody else can move.
//
// A program that asks the same thing twice has not failed in between, and is not held back:
// what it does next may need another's steps between the two (a report that reads stock and
// then orders, a check before and after).

// A try is a command and its answer.
type try struct {
	name, answer string
	server       string
	others       int // changes at the server by others, when it was answered
	failed       bool
	changed      bool
}

// Repetitions from which on a command that has not failed counts as polling.
const (
	oftenAlone    = 4 // the same command with the same answer
	oftenTogether = 2 // the same two to four commands with the same answers
	longestCycle  = 4
)

// polls: the command would be tried once more though nothing has changed. others counts the
// changes at a server by others until now.
func polls(tries []try, name string, others func(server string) int) bool {
	fresh := func(t try) bool { return t.others == others(t.server) && !t.changed }
	if n := len(tries); n > 0 && tries[n-1].name == name && fresh(tries[n-1]) {
		last := tries[n-1]
		same := 0
		for _, t := range slices.Backward(tries) {
			if t != last {
				break
			}
			same++
		}
		if last.failed || same >= oftenAlone {
			return true
		}
	}
	for cycle := 2; cycle <= longestCycle; cycle++ {
		if repeats(tries, cycle, fresh) && tries[len(tries)-cycle].name == name {
			return true
		}
	}
	return false
}

// repeats: the last tries are the same ones, cycle of them, often enough.
func repeats(tries []try, cycle int, fresh func(try) bool) bool {
	n := cycle * oftenTogether
	if len(tries) < n {
		return false
	}
	tail := tries[len(tries)-n:]
	for i, t := range tail {
		if !fresh(t) || t != tail[i%cycle] {
			return false
		}
	}
	return true
}
