// Package retry recognizes buyers that repeat themselves, from their commands and answers. A buyer may poll a server
// until another buyer changes something (Polling), or repeat the same commands forever (Loop).
package retry

import (
	"fmt"

	"github.com/oversell/oversell/internal/explore/target/naming"
)

// A buyer that finds a lock taken, or a row missing, tries again. Until another buyer changes the server, the same
// question gets the same answer, and each number of such futile retries would be a separate schedule. So after
// Spec.Tries futile retries in a row, the buyer's next command is held back until something changes, or until no other
// buyer can move. The search then does not see the program after more retries. schedule.Point.Held reports
// that.

// A Polling knows which buyers poll. It belongs to one run and serves one goroutine.
type Polling struct {
	Alone   bool           // one buyer runs alone, and routine learns from it
	GaveUp  string         // a buyer's first change after futile retries, although no other buyer had changed anything; "": none
	often   int            // number of equal tries after which a buyer counts as polling
	waits   int            // number of equal tries after which a change by the buyer sets GaveUp
	routine Routine        // commands that a buyer alone repeats, too; more retries are needed until these count as polling
	changes map[string]int // number of changes by all buyers, by server
	recent  map[int]*pollster
}

// NewPolling returns the Polling of one run; often and waits are its fields. The Routine is kept for later runs.
func NewPolling(often, waits int, routine Routine) *Polling {
	return &Polling{often: often, waits: waits, routine: routine, changes: map[string]int{}, recent: map[int]*pollster{}}
}

// A Routine contains the commands that a buyer alone repeats, by skeleton, with the number of equal retries. A buyer
// that repeats such a command need not be waiting for another buyer: many object-relational mappers read a row again
// and again.
type Routine map[string]int

// mostRoutine is the maximum number of retries in a Routine. A buyer that repeats a command more often waits for
// something within its own program.
const mostRoutine = 16

// learn records a command that repeats the last tries. It records only commands with at least `often` repetitions.
func (r Routine) learn(tries []Try, name string, often int) {
	n := often - 1
	same := func(string) int { return tries[len(tries)-1].others }
	for n <= mostRoutine && polls(tries, name, n+1, same) {
		n++
	}
	switch key := naming.Skeleton(name); {
	case n > mostRoutine:
		delete(r, key)
	case n >= often:
		r[key] = max(r[key], n)
	}
}

// A pollster records the recent commands of one buyer.
type pollster struct {
	tries []Try          // the most recent ones
	equal int            // number of futile tries in a row; 0 while it is below Polling.waits
	since int            // other buyers' changes at all servers, counted when equal was set
	own   map[string]int // number of this buyer's changes, by server
}

func (p *Polling) of(buyer int) *pollster {
	if p.recent[buyer] == nil {
		p.recent[buyer] = &pollster{own: map[string]int{}}
	}
	return p.recent[buyer]
}

// others returns the number of changes at a server that the buyer did not make.
func (p *Polling) others(buyer int, server string) int {
	return p.changes[server] - p.of(buyer).own[server]
}

// Changed records a change at a server that came from no buyer.
func (p *Polling) Changed(server string) { p.changes[server]++ }

// ChangedBy records a change at a server by a buyer. The change gives other buyers a reason to try again, but not this
// one.
func (p *Polling) ChangedBy(buyer int, server string) {
	p.changes[server]++
	p.of(buyer).own[server]++
}

// Tried records a command of a buyer with its answer.
func (p *Polling) Tried(buyer int, t Try) {
	if t.Changed {
		p.ChangedBy(buyer, t.Server)
	}
	b := p.of(buyer)
	p.outlasts(buyer, t)
	t.others = p.others(buyer, t.Server)
	if p.Alone {
		p.routine.learn(b.tries, t.Name, p.often)
	}
	b.tries = append(b.tries, t)
	if most := longestCycle * (p.often + mostRoutine); len(b.tries) > most {
		b.tries = b.tries[len(b.tries)-most:]
	}
}

// outlasts sets GaveUp if the buyer has stopped its futile retries and now changes something with another command.
func (p *Polling) outlasts(buyer int, t Try) {
	b, since := p.of(buyer), 0
	for server := range p.changes {
		since += p.others(buyer, server)
	}
	more := func(n int) bool {
		return polls(b.tries, t.Name, n, func(server string) int { return p.others(buyer, server) })
	}
	switch least := p.waits + p.routine[naming.Skeleton(t.Name)]; {
	case more(least):
		for b.equal, b.since = least, since; more(b.equal); b.equal++ {
		}
	case since != b.since:
		b.equal = 0
	case b.equal > 0 && t.Changed && p.GaveUp == "":
		p.GaveUp = fmt.Sprintf("a buyer gave up after %d tries and went on with %s, which was not explored in every order: add --tries %[1]d", b.equal, naming.Short(t.Name))
	}
}

// Polls reports whether the buyer has sent that command again and again without any change at the servers.
func (p *Polling) Polls(buyer int, name string) bool {
	often := p.often + p.routine[naming.Skeleton(name)]
	return polls(p.of(buyer).tries, name, often, func(server string) int { return p.others(buyer, server) })
}

// A Try is a command and its answer.
type Try struct {
	Name, Answer string
	Server       string
	others       int // number of changes by other buyers at the server before this answer
	Changed      bool
}

// longestCycle is the maximum number of commands in a retry: WATCH, GET, UNWATCH.
const longestCycle = 4

// polls reports whether the command would repeat the last tries once more. There must be at least `often` repetitions
// without any change. The function `others` counts the changes of other buyers at a server so far.
func polls(tries []Try, name string, often int, others func(server string) int) bool {
	fresh := func(t Try) bool { return t.others == others(t.Server) && !t.Changed }
	for cycle := 1; cycle <= longestCycle; cycle++ {
		if repeats(tries, cycle, often, fresh) && tries[len(tries)-cycle].Name == name {
			return true
		}
	}
	return false
}

// repeats reports whether the last tries are `often` repetitions of a cycle with the given number of commands.
func repeats(tries []Try, cycle, often int, fresh func(Try) bool) bool {
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
