package target

// A buyer that finds a lock taken, or a row missing, tries again. The same question gets the same
// answer until another buyer has changed the server, and each number of futile retries would be
// a schedule of its own. So after a number of them in a row (Spec.Tries) such a command is held
// back until then, or until no other buyer can move. What a program does after more futile
// retries, while another could go on, is not seen: schedule.Point.Held says so.

// A polling knows which buyers poll.
type polling struct {
	often   int            // retries of the same before a buyer is taken to poll
	changes map[string]int // at each server, by anybody
}

// A pollster is what one buyer has tried.
type pollster struct {
	tries []try          // the last ones
	own   map[string]int // of polling.changes, those by this buyer
}

// changed notes a change at a server that is no buyer's.
func (p polling) changed(server string) { p.changes[server]++ }

// changedBy notes a change at a server by a buyer, which has no reason to try again.
func (p polling) changedBy(b *pollster, server string) {
	p.changes[server]++
	b.own[server]++
}

// tried notes a command of a buyer and its answer.
func (p polling) tried(b *pollster, t try) {
	if t.changed {
		p.changedBy(b, t.server)
	}
	t.others = p.changes[t.server] - b.own[t.server]
	b.tries = append(b.tries, t)
	if most := longestCycle * p.often; len(b.tries) > most {
		b.tries = b.tries[len(b.tries)-most:]
	}
}

// polls reports whether the buyer has sent that command again and again, and nothing has changed.
func (p polling) polls(b *pollster, name string) bool {
	return polls(b.tries, name, p.often, func(server string) int { return p.changes[server] - b.own[server] })
}

// A try is a command and its answer.
type try struct {
	name, answer string
	server       string
	others       int // changes at the server by others, when it was answered
	changed      bool
}

// longestCycle is how many commands a try has, at most: WATCH, GET, UNWATCH.
const longestCycle = 4

// polls reports whether the buyer would repeat what it tried so often in a row, although nothing
// has changed. others counts the changes at a server by others until now.
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
