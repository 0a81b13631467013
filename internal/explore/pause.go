package explore

import (
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// Buyers that share a process share its pools. A buyer that pauses there may have returned its
// connection, and another buyer that moves in the pause gets it. After a step
// with a pause, the search therefore adds a branch for each move of another buyer. "1~2" is 1 and, in
// the pause that follows, 2. The search continues such a branch only if its commands then wait on
// other connections than after 1 and then 2.

// pauseTries is the maximum number of runs of such a branch. In each, the pause may be over before the
// other buyer has moved.
const pauseTries = 30

// pauses adds a branch for each move that another buyer could make in the pause before n. If the step before n
// was also followed by a pause, it records the connections on which the commands now wait.
func (w *walk) pauses(n *node, p *schedule.Point) {
	if !w.x.config.Shared || n.parent == nil {
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
	w.found = append(all, w.found...) // the last found runs first: a plain move runs before its move in the pause
}

// idle reports whether a move in a pause has led to the same connections as the move after it.
func (w *walk) idle(p *schedule.Point) bool {
	if w.after == nil || p.Depth != len(w.path) {
		return false
	}
	_, token, _ := strings.Cut(w.choice.Token, "~")
	return w.after.plain[token] == p.Standing
}

// missed schedules another run of a branch whose pause was missed. After the last run, the result
// names a pause that came but was always over too soon.
func (s *search) missed(t trip, v schedule.Void) {
	w, is := t.(*walk)
	if !is || w.after == nil {
		return
	}
	w.seen = w.seen || v.Seen
	most := pauseTries
	if !w.seen {
		most /= 3 // the timer may belong to something else than a pause
	}
	if w.tries++; w.tries < most {
		w.frontier.push(w.cost, w.branch)
		return
	}
	if w.seen {
		s.result.Pauses = withNew(s.result.Pauses, []string{w.after.by.Name})
	}
}
