package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A walk is a run that executes one branch of a tree. It makes the choices on the path to the branch, then the branch's
// own choice, and then the first available choice at each node.
type walk struct {
	*tree
	branch
	cost       int // cost of the branch
	path       []*node
	now        *node // the current node
	by         *schedule.Choice
	concurrent bool // the run has sent two buyers' commands to one server at once (a concurrent pair)
	strayed    bool // the server did not repeat the result of a concurrent pair on the path

	kids  []*node // new nodes below a concurrent pair
	found []found
}

// found is a new branch, an untried choice that a run has discovered, with its cost.
type found struct {
	branch
	cost int
}

// choose implements schedule.Chooser.
func (w *walk) choose(p *schedule.Point) (string, error) {
	n := w.below(w.now, w.by)
	n.seen, n.mixed, n.races = p.Seen, p.Mixed, p.Races && w.x.config.reduced()
	w.result.Held = w.result.Held || p.Held
	w.result.Late = w.result.Late || p.Late
	if w.by != nil && w.by.Pair {
		w.concurrent = true
		w.result.Courses[n.seen]++
	}
	n.choices = w.options(p)
	if !w.concurrent && w.x.config.Overlap {
		n.choices = append(n.choices, w.pairs(n.choices)...)
	}
	switch {
	case w.idle(p):
		return "", nil // the branch with the same move after the pause explores the rest
	case w.strayed || p.Depth >= len(w.path):
		w.now, w.by = n, w.open(n)
		if w.by == nil && len(n.choices) > 0 {
			return "", nil // other runs cover all choices that are left (they sleep)
		}
	case !n.same(w.path[p.Depth]):
		if !w.concurrent {
			return "", w.x.mode.diverged(fmt.Sprintf("%s, and before %s; %s", list(n.choices), list(w.path[p.Depth].choices), where(p)))
		}
		w.strayed = true
		if slices.ContainsFunc(w.now.kids, n.same) {
			return "", nil // another branch explores this result
		}
		w.now, w.by = n, w.open(n)
	case p.Depth == len(w.path)-1:
		w.now, w.by = w.path[p.Depth], w.choice
	default:
		w.now, w.by = w.path[p.Depth], w.path[p.Depth+1].by
	}
	w.pauses(w.now, p)
	if w.by == nil {
		return schedule.Judge, nil
	}
	return w.by.Token, nil
}

// where describes the position of each buyer, for an error message.
func where(p *schedule.Point) string {
	if p.Where == nil {
		return fmt.Sprintf("step %d", p.Depth+1)
	}
	return p.Where()
}

func list(choices []*schedule.Choice) string {
	var names []string
	for _, c := range choices {
		names = append(names, c.Token+" "+c.Name)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// below returns a new node that follows n after the given choice.
func (w *walk) below(n *node, by *schedule.Choice) *node {
	kid := below(n, by)
	if n != nil && w.x.config.reduced() {
		kid.sleep = n.asleepBelow(by)
	}
	return kid
}

// open adds a new node. It returns the choice that the run makes now, and the others become branches. If n.races is
// set, another command becomes a branch only for a race, see races.go. At the end of a schedule, or if other runs cover
// all choices (they sleep), open returns nil.
func (w *walk) open(n *node) (first *schedule.Choice) {
	if w.concurrent {
		w.kids = append(w.kids, n)
	}
	ordered := n.awake()
	if len(ordered) == 0 {
		return nil
	}
	n.taken = ordered
	if n.races {
		n.taken = n.beginning(ordered[0])
	}
	for _, c := range slices.Backward(n.taken[1:]) {
		w.found = append(w.found, found{branch{at: n, choice: c}, n.cost + n.price(n.last, c)})
	}
	return ordered[0]
}
