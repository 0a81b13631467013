package explore

import "github.com/oversell/oversell/internal/explore/schedule"

// A concurrent pair is two buyers' commands for one server: the explorer sends the second before the first is answered.
// The server decides which command it executes first, whether one waits, and which is the victim of a deadlock. So the
// observed result is part of the schedule's identity (node.seen). The search explores each observed result separately,
// and the total number of schedules is unknown.
//
// Pairs need only --overlap, not a name in --events. Wherever 1 and 2 are choices and do not commute, "1+2" is a
// choice, too, but only once in a schedule.

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

// again puts a branch back into the frontier, since the server did not repeat a pair's result on the path to it.
func (t *tree) again(b branch, cost int) {
	if b.tries++; b.tries == courses {
		t.result.Missed++
		return
	}
	t.frontier.push(cost, b)
}
