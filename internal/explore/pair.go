package explore

import "github.com/oversell/oversell/internal/explore/schedule"

// A concurrent pair sends two commands of two buyers to one server at once: the second is sent before
// the first is answered. The server decides which it takes first, whether one waits, and which one is
// the victim of a deadlock. So the observed result is part of the schedule's identity (node.seen). Each
// observed course is explored separately, and the total number of schedules is unknown.
//
// A pair is not an event that the user asks for: "1+2" is a choice wherever 1 and 2 are, and the two
// commands do not commute, once in a schedule.

// pairs returns the choices of two commands at once, in both orders.
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

// again puts a branch back if the server did not take its path this time.
func (t *tree) again(b branch, cost int) {
	if b.tries++; b.tries == courses {
		t.result.Missed++
		return
	}
	t.frontier.push(cost, b)
}
