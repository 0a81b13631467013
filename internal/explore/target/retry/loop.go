package retry

import (
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/target/naming"
)

// Limits on the number of steps in a schedule. The search gives up a schedule when its commands repeat, see Loop, but
// at the latest after this many steps.
const (
	// The limit is stepsPerCommand steps for each command that the buyers send alone, since retries make a schedule
	// longer. It is at least leastSteps.
	leastSteps, stepsPerCommand = 200, 4
	// MaxSteps is the highest limit. It also applies to a buyer alone, whose number of commands is not known yet.
	MaxSteps = 10_000
)

// StepLimit returns the maximum number of steps of a schedule. The parameter `alone` is the number of steps that the
// buyers take when each runs alone.
func StepLimit(alone int) int { return min(max(leastSteps, stepsPerCommand*alone), MaxSteps) }

// A Loop recognizes a schedule that repeats itself: the same commands with the same answers, again and again, without a
// change at any server. It belongs to one run. The zero value is ready to use.
type Loop struct {
	recent []Step // the last steps, at most longestLoop
	equal  [longestLoop]int
	looped int // length of the loop; 0: none
}

// A Step is a command of a buyer, and its answer.
type Step struct {
	Buyer        int
	Name, Answer string
}

const (
	longestLoop = 50         // maximum number of commands in one pass of a loop
	loopProof   = leastSteps // number of commands in a row that must repeat the loop before the schedule is given up
)

// Add adds the next step. The parameter `changed` says whether the command may have changed something at its server.
func (r *Loop) Add(s Step, changed bool) {
	if changed {
		*r = Loop{}
		return
	}
	for n := range min(len(r.recent), longestLoop) {
		if r.recent[len(r.recent)-1-n] != s {
			r.equal[n] = 0
			continue
		}
		if r.equal[n]++; r.equal[n] == loopProof && r.looped == 0 {
			r.looped = n + 1
		}
	}
	if len(r.recent) == longestLoop {
		r.recent = slices.Delete(r.recent, 0, 1)
	}
	r.recent = append(r.recent, s)
}

// Endless reports whether the schedule repeats itself.
func (r *Loop) Endless() bool { return r.looped > 0 }

// String describes the loop by its first command. If there is none, it says that the schedule is too long.
func (r *Loop) String() string {
	if r.looped == 0 {
		return fmt.Sprintf("it sends more than %d commands", MaxSteps)
	}
	first := r.recent[len(r.recent)-r.looped]
	if r.looped == 1 {
		return fmt.Sprintf("it sends %q again and again, and nothing changes", naming.Short(first.Name))
	}
	return fmt.Sprintf("it sends the same %d commands again and again, beginning with %q, and nothing changes", r.looped, naming.Short(first.Name))
}
