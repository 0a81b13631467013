package explore

import "github.com/oversell/oversell/internal/explore/schedule"

// A concurrent pair sends two commands of two buyers to one server at once: it sends the second before the first is
// answered. The server decides which command it executes first, whether one waits, and which is the victim of a
// deadlock. So the observed result is part of the schedule's identity (node.seen). The search explores each
// observed result separately, and the total number of schedules is unknown.
//
// The user does not request pairs, unlike events. "1+2" is a choice wherever 1 and 2 are choices and do not commute,
// but only once in a schedule.

// pairs returns the concurrent pairs of the given choices, each in both orders.
func (t *tree) pairs(choices []*schedule.Choice) (pairs []*schedule.Choice) {
	for i, a := range choices {
		for _, b := range choices[i+1:] {
			if !a.Command() || !b.Command() || a.Buyer == b.Buyer || independent(a, b) {
				continue
			}
			for _, both := range [][2]*schedule.Choice{{a, b}, {b, a}} {
				if pair, ok := schedule.Together(*both[0], *both[1]); ok {
					pairs = append(pairs, t.intern(pair))
				}
			}
		}
	}
	return pairs
}

// again puts a branch back into the frontier, after a run in which the server did not repeat the path to it.
func (t *tree) again(b branch, cost int) {
	if b.tries++; b.tries == courses {
		t.result.Missed++
		return
	}
	t.frontier.push(cost, b)
}
