package target

// A buyer who tries in vain tries again: a lock that is not free, a row that is not there
// yet. The same question gets the same answer until somebody else has changed the server,
// and there would be as many orders as one can wait tries for. So after a number of tries in
// a row (Spec.Tries) such a command is held back until then, or until nobody else can move.
// What a program does after more tries in vain than that, while another could go on, is not
// seen: schedule.Point.Held says so.

// A try is a command and its answer.
type try struct {
	name, answer string
	server       string
	others       int // changes at the server by others, when it was answered
	changed      bool
}

// longestCycle is how many commands a try has, at most: WATCH, GET, UNWATCH.
const longestCycle = 4

// polls: what was tried so often in a row in vain would be tried once more, and nothing has
// changed. others counts the changes at a server by others until now.
func polls(tries []try, name string, often int, others func(server string) int) bool {
	fresh := func(t try) bool { return t.others == others(t.server) && !t.changed }
	for cycle := 1; cycle <= longestCycle; cycle++ {
		if repeats(tries, cycle, often, fresh) && tries[len(tries)-cycle].name == name {
			return true
		}
	}
	return false
}

// repeats: the last tries are the same ones, cycle of them, so often.
func repeats(tries []try, cycle, often int, fresh func(try) bool) bool {
	n := cycle * often
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
