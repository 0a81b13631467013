package target

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/rows"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/backend"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/instance"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/target/rest"
	"github.com/oversell/oversell/internal/explore/target/retry"
)

// mayMeet reports whether two moves belong to different buyers, and other's command may change rows that m's command
// reads. The explorer runs one command at a time, but the server could run both at once.
func (r *choices) mayMeet(m, other move) bool {
	return other.Command != nil && other.Command.Alters && other.Buyer != m.Buyer && other.Touches == m.Touches && r.code.Divides(m.Command, other.Command)
}

// mayCross reports whether the commands of two buyers may deadlock while the server executes both.
func (r *choices) mayCross(m, other move) bool {
	return other.Command != nil && m.Effect == schedule.Writes && other.Effect == schedule.Writes && other.Buyer != m.Buyer && other.Touches == m.Touches && r.code.Crosses(m.Command, other.Command)
}

type choices struct {
	app       *app.App
	instances *instance.Instances
	filled    func(buyer int) app.Request // returns a buyer's request, with values from the answers to the requests of `before`
	code      backend.Catalogs
	table     *gates.Table
	buyers    *client.Buyers
	names     *naming.Names
	whose     *attribution
	polling   *retry.Polling
	snapshot  snapshots
	splitting *splitting
	letters   bool // see Runner.letters
	anyOrder  bool // see Runner.anyOrder
	rows      *rows.Tracker
	waits     rest.Waits

	coming  []*client.Buyer // buyers that have not sent their request; in a shared instance, sending is a step
	runsOut []*gates.Op     // waiting commands whose time-out is one of the current moves
	held    bool            // the last moves leave out a futile retry: the same command would get the same answer
	waiter  int             // the buyer of the command left out
	divided []string        // commands between whose read and write another buyer could write

	holdable bool // --overlap would divide one of these commands into two steps
}

// divides records each command that reads and then writes, if another buyer's write could come in between.
func (r *choices) divides(all []move) {
	for _, m := range all {
		if m.Command == nil {
			continue
		}
		meets := m.Command.Divided && !(r.splitting.on && m.Command.Overlaps) && slices.ContainsFunc(all, func(other move) bool { return r.mayMeet(m, other) })
		if meets || slices.ContainsFunc(all, func(other move) bool { return r.mayCross(m, other) }) {
			r.divided, r.holdable = append(r.divided, naming.Short(r.names.Usual(m.Command.Text))+r.code.Runs(m.Command)), r.holdable || meets && m.Command.Overlaps
		}
	}
}

// judged reports whether a command may change a table that a rule of `never` names. The search first tries schedules in
// which another buyer moves right before such a command.
func (r *choices) judged(o *gates.Op) bool {
	dialect, sql := effect.DialectOf(o.Conn().Protocol)
	return o.Alters && sql && slices.ContainsFunc(effect.Relations(o.Text, dialect), func(name string) bool { return r.app.RuleOn(name) != "" })
}

// ready returns the current moves. If every buyer polls or waits in a server, the moves are the time-outs of waits. If
// no wait has a time-out, the moves are the retries of the polling buyers.
func (r *choices) ready() (all []move, _ error) {
	now := r.table.Now()
	held := slices.DeleteFunc(slices.Concat(now.Held, now.Uncommitted), isLate)
	gates.InOrder(held)
	r.letter(held, now.All())
	var polling []move
	for _, b := range r.buyers.All {
		if m, comes := r.request(b); comes {
			all = append(all, m)
			continue
		}
		theirs, err := movesOf(b, held)
		if err != nil {
			return nil, err
		}
		for _, m := range theirs {
			if m.Command.Behind {
				continue
			}
			m.Name, m.Effect, m.Global, m.Judged = m.Command.Name, m.Command.Effect, r.instances.Shared(), r.judged(m.Command) || r.snapshot[m.Command.Conn()] == taken
			m.AnyOrder = r.anyOrder && !m.Command.Timed
			if !m.Command.Timed { // the steps alone do not decide when a timer's command arrives, so the search may not reorder it by its footprint
				m.Footprint = m.Command.Usage.Now
			}
			if m.Command.Executed {
				commitOf(&m)
			}
			if !m.Command.Executed && r.polling.Polls(b.ID, m.Command.Name) {
				polling = append(polling, m)
			} else {
				all = append(all, m)
			}
		}
	}
	if len(all) == 0 {
		over, again, err := r.expiring()
		if err != nil {
			return nil, err
		}
		all, polling = over, append(polling, again...)
	}
	if few, restricted := r.splitting.restrict(all); restricted {
		all, polling = few, nil
	}
	if len(polling) > 0 {
		r.rows.Doubt("a buyer tries again until another one changes something, and any change counts")
	}
	if r.held = len(all) > 0 && len(polling) > 0; r.held {
		r.waiter = polling[0].Buyer
	}
	if len(all) == 0 {
		for i := range polling {
			polling[i].Global = true // it commutes with no step, since any step may make this retry succeed
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

// letter gives each new command the first letter that none of its buyer's other commands has. The command keeps this
// letter in its token while the others come and go, so the search recognizes the command.
func (r *choices) letter(commands, all []*gates.Op) {
	if !r.letters {
		return
	}
	for _, o := range commands {
		if o.Timed || o.Letter != 0 {
			continue
		}
		taken := func(other *gates.Op) bool { return other.Buyer == o.Buyer && other.Letter == o.Letter && other != o }
		for o.Letter = 'a'; slices.ContainsFunc(all, taken); {
			o.Letter++
		}
	}
}

// expiring returns the waits in the servers that may time out when no other buyer can move. Any of them may end first.
// Waits that have already ended several times without a change are in a separate list (`again`). If the program has set
// no limit, as for a wait for a row, the wait is in neither list, because only the server's own time-out would end it.
func (r *choices) expiring() (over, again []move, _ error) {
	limited := slices.DeleteFunc(r.table.Now().Flying, func(o *gates.Op) bool { return o.Limit <= 0 })
	for _, b := range r.buyers.All {
		theirs, err := movesOf(b, limited)
		if err != nil {
			return nil, nil, err
		}
		for _, m := range theirs {
			m.Text = fmt.Sprintf("no other buyer can move: the wait of %s ran out", m.Command.Limit)
			m.Name, m.Global = m.Command.Name+" runs out", true
			m.Make = func(ctx context.Context) error { return r.endWait(ctx, m.Command) }
			if r.polling.Polls(b.ID, m.Command.Name) {
				again = append(again, m)
			} else {
				over = append(over, m)
			}
		}
	}
	return over, again, nil
}

// endWait ends a command's wait in a server, as a time-out does.
func (r *choices) endWait(ctx context.Context, o *gates.Op) error {
	r.buyers.Current = o.Buyer
	return r.waits.RunOut(ctx, o)
}

// isLate reports whether type repeating holds the command back until the step at which it came in an earlier run.
func isLate(o *gates.Op) bool { return o.Late }

// movesOf returns one move for each command of the buyer. A letter in each token distinguishes the commands. Commands
// of timers get the last letters: in a replay such a command may be missing, and the other tokens must not change.
func movesOf(b *client.Buyer, commands []*gates.Op) (all []move, _ error) {
	theirs := slices.DeleteFunc(slices.Clone(commands), func(o *gates.Op) bool { return o.Buyer != b.ID })
	plain := 0
	for _, o := range theirs {
		if !o.Timed {
			plain++
		}
	}
	last := 'q' - rune(len(theirs)-plain) // for a command of no timer
	for i, o := range theirs {
		token := strconv.Itoa(b.ID)
		if i > int('q'-'a') || !o.Timed && o.Letter > last {
			return nil, naming.Void("a buyer has more than 17 commands at the gates", "buyer %d", b.ID)
		}
		switch {
		case o.Timed:
			token += string(rune('q' - (len(theirs) - 1 - i)))
		case o.Letter != 0:
			token += string(o.Letter)
		case plain > 1:
			token += string(rune('a' + i))
		}
		all = append(all, move{Command: o, Choice: schedule.Choice{Token: token, Touches: o.Conn().Protocol, Buyer: b.ID}})
	}
	return all, nil
}

// request returns the step in which a buyer sends its request. Buyers with equal requests are interchangeable, so the
// search sends their requests in one order only.
func (r *choices) request(b *client.Buyer) (m move, comes bool) {
	same := func(other *client.Buyer) bool { return r.whose.of(other).history == r.whose.of(b).history }
	if at := slices.IndexFunc(r.coming, same); at < 0 || r.coming[at] != b {
		return m, false
	}
	m.Choice = schedule.Choice{Token: strconv.Itoa(b.ID), Name: b.Request.Method + " " + b.Request.URL, Buyer: b.ID, Global: true}
	m.Text = "sends " + m.Name
	m.Make = func(ctx context.Context) error {
		r.coming = slices.DeleteFunc(slices.Clone(r.coming), func(other *client.Buyer) bool { return other == b })
		return r.buyers.Send(ctx, b, r.filled(b.ID), r.instances.Of(b.ID))
	}
	return m, true
}

// mixed reports whether steps of other buyers may lead to two answers for one buyer, which then sees their order.
func (r *choices) mixed(now gates.Commands) bool {
	for _, b := range r.buyers.All {
		waits := 0
		for _, o := range now.Flying {
			if o.Buyer == b.ID {
				waits++
			}
		}
		if waits > 1 || waits > 0 && slices.ContainsFunc(now.Held, func(o *gates.Op) bool { return o.Buyer == b.ID && !o.Late }) {
			return true
		}
	}
	return false
}
