package explore

import "github.com/oversell/oversell/internal/explore/schedule"

// answers counts the buyers of schedules by their answer. It contains no zero counts.
type answers map[string]int

// add adds the buyers of one schedule to the counts, n times, and returns the map. n = -1 removes them. If a is nil,
// add makes the map.
func (a answers) add(e schedule.Ended, n int) answers {
	if a == nil {
		a = answers{}
	}
	for _, o := range e.Outcomes {
		a.change(o.Kind(), n)
	}
	return a
}

func (a answers) subtract(other answers) {
	for kind, n := range other {
		a.change(kind, -n)
	}
}

func (a answers) change(kind string, n int) {
	if a[kind] += n; a[kind] == 0 {
		delete(a, kind)
	}
}
