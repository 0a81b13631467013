package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A walk makes the choices of one branch: those of its path again, then the
// branch's, then the first ones that there are.
type walk struct {
	*search
	branch
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
	n.choices = w.options(p, n.last)
	switch {
	case w.strayed || p.Depth >= len(w.path):
		w.now, w.by = n, w.open(n)
	case !n.same(w.path[p.Depth]):
		if !w.concurrent {
			return "", fmt.Errorf("%w: the same schedule did not run the same way again: %s, and before %s; %s", ErrHarness, list(n.choices), list(w.path[p.Depth].choices), p.State())
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
		return "", nil
	}
	return w.by.Token, nil
}

// same: the two cannot be distinguished.
func (n *node) same(other *node) bool {
	return n.by == other.by && n.seen == other.seen && slices.Equal(n.choices, other.choices)
}

func list(choices []*schedule.Choice) string {
	var names []string
	for _, c := range choices {
		names = append(names, c.Token+" "+c.Name)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// options are the choices of a point, and pairs of them: those of the buyer of the step
// before go first, so that a schedule goes on with it where it can.
func (w *walk) options(p *schedule.Point, last int) []*schedule.Choice {
	var first, others []*schedule.Choice
	newcomer := 0 // with Symmetry: of those who have not begun, the one who may
	for _, a := range p.Choices {
		c := w.one(a)
		if a.Event != "" {
			w.offered[a.Event] = true
		}
		if w.x.config.Symmetry && a.Command() && !p.Begun(a.Buyer) {
			if newcomer == 0 {
				newcomer = a.Buyer
			}
			if a.Buyer != newcomer {
				continue
			}
		}
		if a.Command() && a.Buyer == last {
			first = append(first, c)
		} else {
			others = append(others, c)
		}
	}
	all := append(first, others...)
	if w.x.config.Overlap && !w.concurrent {
		all = append(all, w.pairs(all)...)
	}
	return all
}

// one returns the one choice that is equal to c.
func (s *search) one(c schedule.Choice) *schedule.Choice {
	known := s.choices[c]
	if known == nil {
		known = &c
		s.choices[c] = known
	}
	return known
}

// open adds a new node: its first choice is made now, the others are branches.
// It is nil where nothing new can come of any.
func (w *walk) open(n *node) (first *schedule.Choice) {
	if w.concurrent {
		n.parent.kids = append(n.parent.kids, n)
	}
	if w.x.config.Reduce {
		n.inherit()
	}
	for _, c := range n.choices {
		if !slices.Contains(n.sleep, c) {
			first = c
			break
		}
	}
	for _, c := range slices.Backward(n.choices) {
		if c == first || slices.Contains(n.sleep, c) {
			continue
		}
		cost := n.cost + n.price(c)
		if w.x.config.Reduce {
			cost = 0 // plain depth first
		}
		w.frontier.push(cost, branch{at: n, choice: c})
	}
	return first
}
