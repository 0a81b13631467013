package target

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// An action is a choice, and what it does.
type action struct {
	schedule.Choice
	op    *op
	event event
	comes bool   // a buyer sends its request
	over  bool   // the wait of op has lasted as long as its program lets it
	note  string // of an event or a request, for people
}

func choices(actions []action) (all []schedule.Choice) {
	for _, a := range actions {
		all = append(all, a.Choice)
	}
	return all
}

// actions are what can happen next. Where no command can be let go but by who would only ask
// again, time passes: first the waits run out whose programs have limited them, then who polls
// looks again, and waits anew.
func (r *run) actions(ctx context.Context) (all []action, _ error) {
	f := r.x.floor
	f.mu.Lock()
	held := slices.Clone(f.held)
	f.mu.Unlock()
	var polling []action
	for _, b := range r.buyers {
		if a, comes := r.request(b); comes {
			all = append(all, a)
			continue
		}
		theirs, err := actionsOn(b, held)
		if err != nil {
			return nil, err
		}
		for _, a := range theirs {
			if a.op.behind {
				continue
			}
			a.Name, a.Effect, a.Global = a.op.name, a.op.Effect, r.x.shared
			if r.polls(b, a.op) {
				polling = append(polling, a)
			} else {
				all = append(all, a)
			}
		}
	}
	if len(all) == 0 {
		over, again, err := r.over()
		if err != nil {
			return nil, err
		}
		all, polling = over, append(polling, again...)
	}
	r.held = len(all) > 0 && len(polling) > 0
	if len(all) == 0 {
		for i := range polling {
			polling[i].Global = true // another's step may take it away
		}
		all = polling
	}
	waits := all
	for _, e := range r.x.events {
		if r.struck[e.name()] || len(all) == 0 && len(r.deadEnd()) == 0 {
			continue
		}
		more, err := e.choices(ctx, r)
		if err != nil {
			return nil, err
		}
		for _, a := range more {
			if slices.ContainsFunc(waits, func(w action) bool { return w.over && w.op == a.op }) {
				continue // it runs out anyway
			}
			a.event, a.Event, a.Global = e, e.name(), true
			all = append(all, a)
		}
	}
	return all, nil
}

// over are the waits in the servers that run out where nobody else can move; again are those
// that have run out before, again and again, and nothing has changed. Which of several is first
// depends on when each began, and on what the programs do meanwhile: any may be. A wait that
// its program has not limited, such as one for a row, does not run out here: until the server's
// own time-out has passed nobody is served.
func (r *run) over() (over, again []action, _ error) {
	f := r.x.floor
	f.mu.Lock()
	limited := slices.DeleteFunc(slices.Clone(f.flying), func(o *op) bool { return o.Limit <= 0 })
	f.mu.Unlock()
	for _, b := range r.buyers {
		theirs, err := actionsOn(b, limited)
		if err != nil {
			return nil, nil, err
		}
		for _, a := range theirs {
			a.over, a.note = true, fmt.Sprintf("nobody else can move: the wait of %s ran out", a.op.Limit)
			a.Name, a.Global = a.op.name+" runs out", true
			if r.polls(b, a.op) {
				again = append(again, a)
			} else {
				over = append(over, a)
			}
		}
	}
	return over, again, nil
}

// actionsOn are one for each of the commands that is the buyer's, with the token that tells it
// from the buyer's others.
func actionsOn(b *buyer, commands []*op) (all []action, _ error) {
	theirs := slices.DeleteFunc(slices.Clone(commands), func(o *op) bool { return o.buyer != b.id })
	for i, o := range theirs {
		token := strconv.Itoa(b.id)
		if len(theirs) > 1 {
			if i > int('q'-'a') {
				return nil, voided("a buyer has more than 17 commands at the gates", "buyer %d", b.id)
			}
			token += string(rune('a' + i))
		}
		all = append(all, action{op: o, Choice: schedule.Choice{Token: token, Touches: o.Conn().Protocol, Buyer: b.id}})
	}
	return all, nil
}

// polls: the buyer has sent that in vain, again and again, and nothing has changed.
func (r *run) polls(b *buyer, o *op) bool {
	return polls(b.tries, o.name, r.x.tries, func(server string) int { return r.changes[server] - b.own[server] })
}

// request is the step by which a buyer comes. Of those with the same request the first comes
// first: nobody could tell them apart.
func (r *run) request(b *buyer) (a action, comes bool) {
	same := func(other *buyer) bool { return other.way == b.way }
	if at := slices.IndexFunc(r.coming, same); at < 0 || r.coming[at] != b {
		return a, false
	}
	asked := r.x.app.Buyers[b.id-1]
	a.Choice = schedule.Choice{Token: strconv.Itoa(b.id), Name: asked.Method + " " + asked.URL, Buyer: b.id, Global: true}
	a.comes, a.note = true, "sends "+a.Name
	return a, true
}

// mixed: a buyer may be answered by two steps of which neither is its own, see schedule.Point.
func (r *run) mixed() bool {
	f := r.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range r.buyers {
		sent, waits := 0, 0
		for _, o := range f.held {
			if o.buyer == b.id {
				sent++
			}
		}
		for _, o := range f.flying {
			if o.buyer == b.id {
				waits++
			}
		}
		if waits > 1 || waits > 0 && sent > 0 {
			return true
		}
	}
	return r.x.pushed
}

// tried notes a command and its answer.
func (r *run) tried(o *op, server string) {
	b := r.buyer(o.buyer)
	if o.Answer.Changed {
		r.changes[server]++
		b.own[server]++
	}
	b.tries = append(b.tries, try{
		name: o.name, answer: r.names.shown(o.Answer.Text), server: server,
		others: r.changes[server] - b.own[server], changed: o.Answer.Changed,
	})
	if most := longestCycle * r.x.tries; len(b.tries) > most {
		b.tries = b.tries[len(b.tries)-most:]
	}
}

// numbered is the token of an event that strikes a buyer.
func numbered(e schedule.Event, buyer int) string { return fmt.Sprintf("%s%d", e, buyer) }
