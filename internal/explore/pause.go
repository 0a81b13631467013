package explore

import (
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// Buyers who share a process meet in its pools. One that pauses there may have given its
// connection back, and another buyer who moves in that pause gets it. So where a pause was seen
// after a step, each move of another buyer is a branch of its own: "1~2" is 1 and, in the pause that
// follows, 2. It is gone on with where the commands stand on other connections than after 1 and
// then 2.

// pauseTries are the runs of such a branch: a pause may be over before the other buyer has moved.
const pauseTries = 30

// pauses adds the branches of moves in the pause before n, and notes what the moves after it led to.
func (w *walk) pauses(n *node, p *schedule.Point) {
	if !w.x.config.Shared || w.x.config.Program == "" || n.parent == nil {
		return
	}
	if before := n.parent; before.paused && before.plain[n.by.Token] == "" {
		before.plain[n.by.Token] = p.Standing
	}
	if p.Paused == 0 || n.paused || n.by.Event != "" || strings.Contains(n.by.Token, "~") {
		return
	}
	n.paused, n.plain = true, map[string]string{}
	var all []found
	for _, c := range n.choices {
		if c.Command() && c.Buyer != p.Paused {
			b := branch{at: n.parent, choice: w.one(schedule.During(*n.by, c.Token)), after: n}
			all = append(all, found{b, n.cost + n.price(n.last, c)})
		}
	}
	w.found = append(all, w.found...) // what was found first is run last: the moves after the pause go first
}

// idle reports whether a move in a pause has led to what the same move after it leads to.
func (w *walk) idle(p *schedule.Point) bool {
	if w.after == nil || p.Depth != len(w.path) {
		return false
	}
	_, token, _ := strings.Cut(w.choice.Token, "~")
	return w.after.plain[token] == p.Standing
}

// missed has a branch whose pause was missed tried again. A pause that came, and was always over
// too soon, is named in the result.
func (s *search) missed(t trip, v schedule.Void) {
	w, is := t.(*walk)
	if !is || w.after == nil {
		return
	}
	w.seen = w.seen || v.Seen
	most := pauseTries
	if !w.seen {
		most /= 3 // it may have been no pause: another timer of the program looks the same
	}
	if w.tries++; w.tries < most {
		w.frontier.push(w.cost, w.branch)
		return
	}
	name := w.after.by.Name
	if r := &s.result; w.seen && !slices.Contains(r.Pauses, name) && len(r.Pauses) < mostCompound {
		r.Pauses = append(r.Pauses, name)
	}
}
