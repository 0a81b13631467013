package explore

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// together lets two commands of two buyers go to one server at once: the second
// is sent before the first is answered. Which of them the server takes first,
// whether one waits, and which one it sacrifices in a deadlock, is its own
// choice. So what came of such a step is part of what a schedule is known by
// (node.seen), each way that it was seen to go is explored on its own, and no
// number of schedules is all of them.
//
// It is no event that one asks for: "1+2" is a choice wherever 1 and 2 are and
// the two commands do not commute, once in a schedule.
const together Event = "together"

// courses is how often a schedule with overlapped steps is run until the server
// takes the same course again.
const courses = 10

// errMisfit: the schedule is not one of this strategy or database, or the server
// took another course.
var errMisfit = errors.New("the schedule does not fit")

// pairs are the choices of two commands at once, in both orders.
func (s *search) pairs(choices []*choice) (pairs []*choice) {
	for i, a := range choices {
		for _, b := range choices[i+1:] {
			if a.event == "" && b.event == "" && a.buyer != b.buyer && !independent(a, b) {
				pairs = append(pairs, s.pair(a, b), s.pair(b, a))
			}
		}
	}
	return pairs
}

func (s *search) pair(a, b *choice) *choice {
	return s.one(choice{
		token: a.token + "+" + b.token, name: a.name + " with " + b.name, touches: a.touches, event: together, buyer: b.buyer,
	})
}

// pick finds an action by its token.
func pick(actions []action, token string) (action, bool) {
	first, second, both := strings.Cut(token, "+")
	for _, a := range actions {
		if a.token != first {
			continue
		}
		if !both {
			return a, true
		}
		b, ok := pick(actions, second)
		if !ok || a.touches != b.touches || a.event != "" || b.event != "" || a.buyer == b.buyer {
			return action{}, false
		}
		return action{token: token, event: together, buyer: b.buyer, op: a.op, with: b.op, name: a.name + " with " + b.name, touches: a.touches}, true
	}
	return action{}, false
}

// overlap lets two commands go, in this order. That the first is on its way is
// said by its goroutine.
func (r *run) overlap(ctx context.Context, a action) error {
	a.op.beside, a.with.beside = a.with, a.op
	if err := r.release(a.op, proceedAloud); err != nil {
		return err
	}
	select {
	case <-r.sent:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return r.release(a.with, proceed)
}

// cameTo is what an overlapped step came to, as far as it is the same in every
// run that takes this course; "" of any other step.
func (r *run) cameTo(a action) string {
	if a.event != together {
		return ""
	}
	return fmt.Sprintf("%d: %s, %d: %s", a.op.buyer, r.outcomeOf(a.op), a.with.buyer, r.outcomeOf(a.with))
}

func (r *run) outcomeOf(o *op) string {
	switch {
	case o.blocked || r.flies(o):
		return "waits"
	case o.server == "sql":
		return o.result
	case o.changed:
		return "changed"
	}
	return "unchanged"
}

// again puts a branch back whose path the server did not take this time.
func (s *search) again(b branch, cost int) {
	if b.tries++; b.tries == courses {
		s.result.Missed++
		return
	}
	s.frontier.push(cost, b)
}
