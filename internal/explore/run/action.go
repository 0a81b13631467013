package run

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// An Action is what the scheduler can do next: a choice, and what it is about in
// this run.
type Action struct {
	schedule.Choice
	op     *gate.Op           // a command; of an event: the one whose wait it ends
	with   *gate.Op           // let go together with op, see releasePair
	server *serverstate.Redis // of an event
	event  Event              // nil: commands
	text   string             // of an event: what happens, for people
}

// statement is the command of the step; nil where it is none: of an event op is whose wait
// it ends.
func (a Action) statement() *gate.Op {
	if a.event != nil {
		return nil
	}
	return a.op
}

// actions are the choices that there are, the buyers in order and then the
// events.
func (r *Run) actions(ctx context.Context) (all []Action, err error) {
	for _, b := range r.buyers {
		own, err := b.actions()
		if err != nil {
			return nil, err
		}
		all = append(all, own...)
	}
	if most := r.x.spec.MaxEvents; most > 0 && len(r.struck) >= most {
		return all, nil
	}
	for _, e := range r.x.events {
		name := e.Traits().Name
		if r.struck[name] > 0 {
			continue
		}
		ways, err := e.Choices(ctx, r)
		if err != nil {
			return nil, err
		}
		for _, a := range ways {
			a.event, a.Event = e, name
			all = append(all, a)
		}
	}
	return all, nil
}

// actions are the buyer's commands at the gate that may be let go.
func (b *buyer) actions() (own []Action, err error) {
	for _, o := range b.gate {
		if b.runnable(o) {
			own = append(own, Action{op: o, Choice: schedule.Choice{
				Token: token(o), Buyer: b.id, Name: o.Name, Touches: o.Server, Effect: o.Effect, Background: o.Background,
			}})
		}
	}
	slices.SortFunc(own, func(a, b Action) int { return strings.Compare(a.Token, b.Token) })
	for i := 1; i < len(own); i++ {
		if own[i].Token == own[i-1].Token {
			return nil, fmt.Errorf("%w: buyer %d sends two commands to one server at once: %s, %s", schedule.ErrHarness, b.id, own[i-1].Name, own[i].Name)
		}
	}
	return own, nil
}

// token names an op's buyer, what is not the buyer's own doing and, of a
// Redlock node, the node.
func token(o *gate.Op) string {
	background := ""
	if o.Background {
		background = "r"
	}
	return strconv.Itoa(o.Buyer) + background + strings.TrimPrefix(suffix(o.Server), "-")
}

// fresh is schedule.Point.Fresh.
func (r *Run) fresh(server string) (standing string, fresh bool) {
	if suffix(server) == "" || r.touched[server] {
		return "", false
	}
	var all []string
	for _, b := range r.buyers {
		for _, o := range b.gate {
			if o.Server == server {
				all = append(all, fmt.Sprintf("%d %t %s", o.Buyer, o.Background, o.Name))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n"), true
}

// canMove: there is a step of a buyer. Events alone need not happen.
func canMove(actions []Action) bool {
	return slices.ContainsFunc(actions, func(a Action) bool { return a.Moves() })
}

// pick finds an action by its token.
func pick(actions []Action, token string) (Action, bool) {
	first, second, pair := strings.Cut(token, "+")
	for _, a := range actions {
		if a.Token != first {
			continue
		}
		if !pair {
			return a, true
		}
		b, ok := pick(actions, second)
		if !ok {
			return Action{}, false
		}
		both, ok := schedule.Together(a.Choice, b.Choice)
		return Action{Choice: both, op: a.op, with: b.op}, ok
	}
	return Action{}, false
}
