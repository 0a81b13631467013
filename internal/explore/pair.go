package explore

import "github.com/oversell/oversell/internal/explore/schedule"

// A concurrent pair lets two commands of two buyers go to one server at once: the
// second is sent before the first is answered. Which of them the server takes first,
// whether one waits, and which one it sacrifices in a deadlock, is its own
// choice. So what came of such a step is part of what a schedule is known by
// (node.seen), each way that it was seen to go is explored on its own, and no
// number of schedules is all of them.
//
// It is no event that one asks for: "1+2" is a choice wherever 1 and 2 are and
// the two commands do not commute, once in a schedule.

// pairs are the choices of two commands at once, in both orders.
func (t *tree) pairs(choices []*schedule.Choice) (pairs []*schedule.Choice) {
	for i, a := range choices {
		for _, b := range choices[i+1:] {
			if !a.Command() || !b.Command() || a.Buyer == b.Buyer || independent(a, b) {
				continue
			}
			for _, both := range [][2]*schedule.Choice{{a, b}, {b, a}} {
				if pair, ok := schedule.Together(*both[0], *both[1]); ok {
					pairs = append(pairs, t.one(pair))
				}
			}
		}
	}
	return pairs
}

// again puts a branch back whose path the server did not take this time.
func (t *tree) again(b branch, cost int) {
	if b.tries++; b.tries == courses {
		t.result.Missed++
		return
	}
	t.frontier.push(cost, b)
}
