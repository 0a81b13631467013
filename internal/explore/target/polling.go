package target

import "regexp"

// A buyer that finds a lock taken, or a row missing, tries again. The same question gets the same
// answer until another buyer has changed the server, and each number of futile retries would be a
// schedule of its own. So after Spec.Tries of them in a row, the next one is held back until a change,
// or until no other buyer can move. The search does not see the program's steps after more futile
// retries while another buyer could continue; schedule.Point.Held reports that.

// A polling knows which buyers poll.
type polling struct {
	often   int            // number of equal retries after which a buyer counts as polling
	routine routine        // commands that buyers repeat alone, and need more retries
	alone   bool           // one buyer runs alone, and routine learns from it
	changes map[string]int // by server, by all buyers
}

// A routine has the commands that a buyer repeats even alone, so it does not wait for another buyer there:
// many object-relational mappers read a row again and again. By the command's skeleton, it has the number
// of equal retries.
type routine map[string]int

// mostRoutine is the maximum number of retries in a routine. A buyer that repeats a command more often
// waits for something within its program.
const mostRoutine = 16

// learn records a command that repeats the last tries at least often times.
func (r routine) learn(tries []try, name string, often int) {
	n := often - 1
	same := func(string) int { return tries[len(tries)-1].others }
	for n <= mostRoutine && polls(tries, name, n+1, same) {
		n++
	}
	switch key := skeleton(name); {
	case n > mostRoutine:
		delete(r, key)
	case n >= often:
		r[key] = max(r[key], n)
	}
}

// A pollster records the recent commands of one buyer.
type pollster struct {
	tries []try          // the most recent ones
	own   map[string]int // the part of polling.changes that this buyer made
}

// changed records a change at a server that no buyer made.
func (p polling) changed(server string) { p.changes[server]++ }

// changedBy records a change at a server by a buyer, which then has no reason to try again.
func (p polling) changedBy(b *pollster, server string) {
	p.changes[server]++
	b.own[server]++
}

// tried records a command of a buyer and its answer.
func (p polling) tried(b *pollster, t try) {
	if t.changed {
		p.changedBy(b, t.server)
	}
	t.others = p.changes[t.server] - b.own[t.server]
	if p.alone {
		p.routine.learn(b.tries, t.name, p.often)
	}
	b.tries = append(b.tries, t)
	if most := longestCycle * (p.often + mostRoutine); len(b.tries) > most {
		b.tries = b.tries[len(b.tries)-most:]
	}
}

// polls reports whether the buyer has sent that command repeatedly without any change.
func (p polling) polls(b *pollster, name string) bool {
	often := p.often + p.routine[skeleton(name)]
	return polls(b.tries, name, often, func(server string) int { return p.changes[server] - b.own[server] })
}

// A try is a command and its answer.
type try struct {
	name, answer string
	server       string
	others       int // changes at the server by others at the time of the answer
	changed      bool
}

// longestCycle is the maximum number of commands in a retry: WATCH, GET, UNWATCH.
const longestCycle = 4

// polls reports whether the command would repeat the last tries once more, after they have already been
// repeated often times without any change. others counts the changes at a server by others until now.
func polls(tries []try, name string, often int, others func(server string) int) bool {
	fresh := func(t try) bool { return t.others == others(t.server) && !t.changed }
	for cycle := 1; cycle <= longestCycle; cycle++ {
		if repeats(tries, cycle, often, fresh) && tries[len(tries)-cycle].name == name {
			return true
		}
	}
	return false
}

// repeats reports whether the last tries repeat a cycle of that length often enough.
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

// skeleton returns a statement without its strings and numbers.
func skeleton(statement string) string {
	return notSkeleton.ReplaceAllString(statement, "?")
}

var notSkeleton = regexp.MustCompile(`'(?:[^']|'')*'|\b\d[\w.-]*|` + named)
