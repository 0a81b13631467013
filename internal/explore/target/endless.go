package target

import (
	"fmt"
	"slices"
)

// Limits on the number of steps in a schedule. A schedule is given up when its commands repeat, see
// repetition, and at the latest after these numbers of steps.
const (
	// A schedule of the search may have stepsPerCommand steps for each command that the buyers send
	// alone, since retries make it longer; but leastSteps in any case.
	leastSteps, stepsPerCommand = 200, 4
	// maxSteps applies to a buyer alone, whose number of commands is not known yet, and to the search.
	maxSteps = 10_000
)

// stepLimit returns the maximum number of steps of a schedule, from the number of steps that the buyers
// take when each runs alone.
func stepLimit(alone int) int { return min(max(leastSteps, stepsPerCommand*alone), maxSteps) }

// A repetition recognizes a schedule that repeats itself: the same commands with the same answers, again
// and again, without any change at a server.
type repetition struct {
	recent []step // the last longestLoop of them
	equal  [longestLoop]int
	looped int // length of the loop; 0: none
}

// A step is a command of a buyer, and its answer.
type step struct {
	buyer        int
	name, answer string
}

const (
	longestLoop = 50         // commands in one turn of a loop
	loopProof   = leastSteps // commands in a row that repeat the loop, until the schedule is given up
)

// add adds the next step. changed reports that it may have changed something at its server.
func (r *repetition) add(s step, changed bool) {
	if changed {
		*r = repetition{}
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

// endless reports whether the schedule repeats itself.
func (r *repetition) endless() bool { return r.looped > 0 }

// String describes the loop by its first command, or says that the schedule is too long.
func (r *repetition) String() string {
	if r.looped == 0 {
		return fmt.Sprintf("it sends more than %d commands", maxSteps)
	}
	first := r.recent[len(r.recent)-r.looped]
	if r.looped == 1 {
		return fmt.Sprintf("it sends %q again and again, and nothing changes", short(first.name))
	}
	return fmt.Sprintf("it sends the same %d commands again and again, beginning with %q, and nothing changes", r.looped, short(first.name))
}

// longestName is the maximum length of a command in a result, in characters.
const longestName = 120

// short shortens a command for a line that names several.
func short(text string) string {
	if all := []rune(text); len(all) > longestName {
		return string(all[:longestName]) + "…"
	}
	return text
}
