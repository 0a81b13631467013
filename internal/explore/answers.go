package explore

import "github.com/oversell/oversell/internal/explore/schedule"

// answers counts buyers by the answer that they got ("sold out", for example), over many schedules. It contains no zero
// counts.
type answers map[string]int

// add counts the buyers of one schedule, n times, and returns the map. With n = -1 it removes them. If the map is nil,
// add makes it.
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
