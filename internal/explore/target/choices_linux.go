package target

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/naming"
)

// Moves implements conduct.Subject.
func (r *run) Moves(ctx context.Context) ([]move, error) {
	if err := r.settling.wakes(ctx); err != nil {
		return nil, err
	}
	if err := (repeating{r.settling}).repeat(ctx); err != nil {
		return nil, err
	}
	all, err := choices{r}.ready()
	for _, m := range all {
		if m.Command != nil && m.Command.Divided && !(r.x.overlap && m.Command.Overlaps) && slices.ContainsFunc(all, func(other move) bool { return mayMeet(m, other) }) {
			r.divided = append(r.divided, naming.Short(r.names.Usual(m.Command.Text)))
		}
	}
	return all, err
}

// mayMeet reports whether the other move belongs to another buyer and may change rows in the same
// server. Both commands wait at the gates, so without gates the server could run them at once.
func mayMeet(m, other move) bool {
	return other.Command != nil && other.Command.Alters && other.Buyer != m.Buyer && other.Touches == m.Touches
}

// Over implements conduct.Subject: an event may still free a buyer that has no answer.
func (r *run) Over() bool { return len(r.deadEnd()) == 0 }

// choices finds the possible next moves of the buyers.
type choices struct{ *run }

// judged reports whether a command may change a table that a rule of `never` names. The search tries the
// moments before it first.
func (r choices) judged(o *op) bool {
	dialect, sql := effect.DialectOf(o.Conn().Protocol)
	return o.Alters && sql && slices.ContainsFunc(effect.Relations(o.Text, dialect), func(name string) bool { return r.x.app.RuleOn(name) != "" })
}

// ready returns the current moves. If all buyers only poll, time passes: first the waits end that their
// programs have limited, and then a polling buyer asks again.
func (r choices) ready() (all []move, _ error) {
	f := r.x.gateTable
	f.mu.Lock()
	held := slices.DeleteFunc(slices.Concat(f.held, f.uncommitted), func(o *op) bool { return o.late })
	f.mu.Unlock()
	inOrder(held)
	var polling []move
	for _, b := range r.buyers {
		if m, comes := r.request(b); comes {
			all = append(all, m)
			continue
		}
		theirs, err := b.moves(held)
		if err != nil {
			return nil, err
		}
		for _, m := range theirs {
			if m.Command.behind {
				continue
			}
			m.Name, m.Effect, m.Global, m.Judged = m.Command.name, m.Command.Effect, r.x.shared, r.judged(m.Command) || r.snapshot[m.Command.Conn()] == taken
			if !m.Command.timed { // when it comes does not depend on the steps alone
				m.Footprint = m.Command.usage.Now
			}
			if m.Command.executed {
				commitOf(&m)
			}
			if !m.Command.executed && r.polling.Polls(b.id, m.Command.name) {
				polling = append(polling, m)
			} else {
				all = append(all, m)
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
	if few, restricted := splitting(r).restrict(all); restricted {
		all, polling = few, nil
	}
	if len(polling) > 0 {
		r.rows.Doubt("a buyer tries again until another one changes something, and any change counts")
	}
	r.held = len(all) > 0 && len(polling) > 0
	if len(all) == 0 {
		for i := range polling {
			polling[i].Global = true // another buyer's step may take this move away
		}
		all = polling
	}
	r.runsOut = nil
	for _, m := range all {
		if m.Make != nil && m.Command != nil {
			r.runsOut = append(r.runsOut, m.Command)
		}
	}
	return all, nil
}

// over returns the waits in the servers that end when no other buyer can move. Those that have already
// ended several times without a change are in again. Of several waits, any may end first: that depends
// on when they began and on the programs. over leaves out a wait that its program has not limited, such
// as one for a row, because no buyer is served until the server's own time-out.
func (r choices) over() (over, again []move, _ error) {
	f := r.x.gateTable
	f.mu.Lock()
	limited := slices.DeleteFunc(slices.Clone(f.flying), func(o *op) bool { return o.Limit <= 0 })
	f.mu.Unlock()
	for _, b := range r.buyers {
		theirs, err := b.moves(limited)
		if err != nil {
			return nil, nil, err
		}
		for _, m := range theirs {
			m.Text = fmt.Sprintf("no other buyer can move: the wait of %s ran out", m.Command.Limit)
			m.Name, m.Global = m.Command.name+" runs out", true
			m.Make = func(ctx context.Context) error { return r.endWait(ctx, m.Command) }
			if r.polling.Polls(b.id, m.Command.name) {
				again = append(again, m)
			} else {
				over = append(over, m)
			}
		}
	}
	return over, again, nil
}

// endWait ends a wait in a server as its time-out would.
func (r *run) endWait(ctx context.Context, o *op) error {
	o.timedOut, o.waits = true, false
	r.current = o.buyer
	return r.x.backends[o.Conn().Protocol].interrupt(ctx, o.Conn().ID)
}

// moves returns one move for each command of the buyer, with a token that distinguishes it from the
// buyer's others. Commands of timers have the last letters, since they may be missing in a replay.
func (b *buyer) moves(commands []*op) (all []move, _ error) {
	theirs := slices.DeleteFunc(slices.Clone(commands), func(o *op) bool { return !b.sent(o) })
	plain := 0
	for _, o := range theirs {
		if !o.timed {
			plain++
		}
	}
	for i, o := range theirs {
		token := strconv.Itoa(b.id)
		if i > int('q'-'a') {
			return nil, voided("a buyer has more than 17 commands at the gates", "buyer %d", b.id)
		}
		switch {
		case o.timed:
			token += string(rune('q' - (len(theirs) - 1 - i)))
		case plain > 1:
			token += string(rune('a' + i))
		}
		all = append(all, move{Command: o, Choice: schedule.Choice{Token: token, Touches: o.Conn().Protocol, Buyer: b.id}})
	}
	return all, nil
}

// request is the step in which a buyer arrives. Buyers with the same request arrive in their order,
// since nothing distinguishes them.
func (r choices) request(b *buyer) (m move, comes bool) {
	same := func(other *buyer) bool { return other.way == b.way }
	if at := slices.IndexFunc(r.coming, same); at < 0 || r.coming[at] != b {
		return m, false
	}
	asked := r.x.app.Buyers[b.id-1]
	m.Choice = schedule.Choice{Token: strconv.Itoa(b.id), Name: asked.Method + " " + asked.URL, Buyer: b.id, Global: true}
	m.Text = "sends " + m.Name
	m.Make = func(ctx context.Context) error {
		r.coming = slices.DeleteFunc(slices.Clone(r.coming), func(other *buyer) bool { return other == b })
		return r.send(ctx, b)
	}
	return m, true
}

// mixed reports whether two steps of other buyers may both answer one buyer, see schedule.Point.
func (r choices) mixed() bool {
	f := r.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range r.buyers {
		waits := 0
		for _, o := range f.flying {
			if b.sent(o) {
				waits++
			}
		}
		if waits > 1 || waits > 0 && slices.ContainsFunc(f.held, func(o *op) bool { return b.sent(o) && !o.late }) {
			return true
		}
	}
	return r.x.pushed
}
