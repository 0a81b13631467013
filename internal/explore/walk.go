package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A walk makes the choices of one branch of a tree: those of its path again, then the
// branch's, then the first ones that there are.
type walk struct {
	*tree
	branch
	cost       int // of the branch
	path       []*node
	now        *node // where it is
	by         *schedule.Choice
	concurrent bool // a concurrent pair is behind it
	strayed    bool // the server took another course than before
}

// choose is schedule.Chooser.
func (w *walk) choose(p *schedule.Point) (string, error) {
	n := below(w.now, w.by)
	n.seen = p.Seen
	if w.by != nil && w.by.Pair {
		w.concurrent = true
		w.result.Courses[n.seen]++
	}
	n.choices = w.options(p)
	if !w.concurrent && w.x.config.Overlap {
		n.choices = append(n.choices, w.pairs(n.choices)...)
	}
	switch {
	case w.strayed || p.Depth >= len(w.path):
		w.now, w.by = n, w.open(n)
	case !n.same(w.path[p.Depth]):
		if !w.concurrent {
			return "", fmt.Errorf("%w: the same schedule did not run the same way again: %s, and before %s; %s", ErrHarness, list(n.choices), list(w.path[p.Depth].choices), p.Where())
		}
		w.strayed = true
		if slices.ContainsFunc(w.now.kids, n.same) {
			return "", nil // what follows there is explored on its own
		}
		w.now, w.by = n, w.open(n)
	case p.Depth == len(w.path)-1:
		w.now, w.by = w.path[p.Depth], w.choice
	default:
		w.now, w.by = w.path[p.Depth], w.path[p.Depth+1].by
	}
	if w.by == nil {
		return schedule.Judge, nil
	}
	return w.by.Token, nil
}

func list(choices []*schedule.Choice) string {
	var names []string
	for _, c := range choices {
		names = append(names, c.Token+" "+c.Name)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// open adds a new node: its first choice is made now, the others are branches. It is
// nil at the end.
func (w *walk) open(n *node) (first *schedule.Choice) {
	if w.concurrent {
		n.parent.kids = append(n.parent.kids, n)
	}
	if len(n.choices) == 0 {
		return nil
	}
	ordered := n.inOrder(n.last)
	for _, c := range slices.Backward(ordered[1:]) {
		w.frontier.push(n.cost+n.price(n.last, c), branch{at: n, choice: c})
	}
	return ordered[0]
}
