package explore

import (
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// Buyers that share a process share its connection pools. A buyer that pauses may have returned its connection. If
// another buyer moves in the pause, it may get that connection. So after a step with a pause, the search adds a branch
// for each move of another buyer. "1~2" is a move of buyer 1 and, in the pause that follows, a move of buyer 2. The
// search continues such a branch only if the commands wait on other connections than after 1 and 2 without a pause.

// pauseTries is the maximum number of runs of a branch with a move in a pause. The branch needs several runs, because
// the pause may end before the other buyer has moved.
const pauseTries = 30

// pauses adds a branch for each move that another buyer could make in the pause before node n. If n's parent also
// follows a pause, pauses records which commands now wait on which connections. The method idle compares that.
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
			b := branch{at: n.parent, choice: w.intern(schedule.During(*n.by, c.Token)), after: n}
			all = append(all, found{b, n.cost + n.price(n.last, c)})
		}
	}
	w.found = append(all, w.found...) // branches run from the last to the first, so a plain move runs before the same move in a pause
}

// idle reports whether the move in a pause was pointless: it led to the same connections as the same move after the
// pause.
func (w *walk) idle(p *schedule.Point) bool {
	if w.after == nil || p.Depth != len(w.path) {
		return false
	}
	_, token, _ := strings.Cut(w.choice.Token, "~")
	return w.after.plain[token] == p.Standing
}

// missed schedules another run of a branch whose pause ended too early. After the maximum number of runs, the result
// names the command before the pause, if a pause has occurred.
func (s *search) missed(t execution, v schedule.Void) {
	w, is := t.(*walk)
	if !is || w.after == nil {
		return
	}
	w.seen = w.seen || v.Seen
	most := pauseTries
	if !w.seen {
		most /= 3 // the program may have no pause here: perhaps another timer ran once
	}
	if w.tries++; w.tries < most {
		w.frontier.push(w.cost, w.branch)
		return
	}
	if w.seen {
		s.result.Pauses = withNew(s.result.Pauses, []string{w.after.by.Name})
	}
}
