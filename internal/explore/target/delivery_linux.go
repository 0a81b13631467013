package target

import (
	"cmp"
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/rows"
	"github.com/oversell/oversell/internal/explore/target/backend"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/target/retry"
	"github.com/oversell/oversell/internal/explore/target/session"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A delivery takes the commands that have arrived, finds their buyers, and delivers the answers, one at a time. It
// reports both to the other parts of the run. It implements rest.Run, whose methods are called when the program is
// idle.
type delivery struct {
	programs session.Programs
	guard    *ignoreGuard
	learned  *learned
	buyers   *client.Buyers
	names    *naming.Names
	whose    *attribution
	polling  *retry.Polling
	snapshot snapshots
	rows     *rows.Tracker
	record   *recorder
	leftover *leftover
	strays   *strays
	pause    *pause

	loop    retry.Loop
	answers []exchange              // recorded only for a witness
	steps   map[gates.Template]bool // commands that were steps; recorded only if oversell.yaml ignores other commands
}

// Guard implements rest.Run.
func (d *delivery) Guard(ctx context.Context) error { return d.guard.look(ctx) }

// Pause implements rest.Run.
func (d *delivery) Pause(ctx context.Context, sleeps bool) (made bool, _ error) {
	return d.pause.moveInPause(ctx, sleeps)
}

// Ended implements rest.Run.
func (d *delivery) Ended(c *wire.Conn) {
	d.polling.ChangedBy(c.Buyer, c.Protocol) // the end of a connection may release locks, so a polling buyer may retry
	d.rows.Closed(c)
	delete(d.whose.open, c)
}

// changedAll records that the data at all servers may have changed.
func (d *delivery) changedAll() {
	for server := range d.programs.Backends {
		d.polling.Changed(server)
	}
}

// HandOver implements rest.Run. It delivers one answer: to the buyer that moved last or, if that has none, to the first
// buyer with an answer. While it is uncertain which answer comes first, HandOver delivers none.
func (d *delivery) HandOver(ctx context.Context, ordered int64) (moved bool, _ error) {
	passed := d.free()
	come, err := d.attribute()
	passed = err == nil && (d.setUp() || passed)
	d.rows.Arrived(gates.ForRows(come...))
	now := d.programs.Gates.Table.Now()
	if err != nil || passed || len(now.Answered) == 0 {
		return passed, err
	}
	for _, o := range now.Answered { // a message from a server, without a known buyer, counts for the current buyer
		if o.Buyer == 0 {
			o.Buyer = d.buyers.Current
		}
	}
	if d.uncertain(now, ordered) {
		return false, nil
	}
	gates.InOrder(now.Answered)
	o := now.Answered[max(0, slices.IndexFunc(now.Answered, d.isCurrent))]
	d.programs.Gates.Table.Take(o)
	if err := d.take(ctx, o); err != nil {
		return false, err
	}
	d.buyers.Current = o.Buyer
	d.buyers.MarkRunnable(o.Buyer)
	if o.Push && d.programs.Instances.Shared() {
		d.buyers.Current = 0 // any listening buyer may send next
	}
	o.Deliver()
	return true, nil
}

// isCurrent reports whether the command's buyer was released or answered last.
func (d *delivery) isCurrent(o *gates.Op) bool { return o.Buyer == d.buyers.Current }

// uncertain reports whether another answer may have to come first. The last command may have released locks, so other
// buyers' answers may come before its own. In a shared instance, the order of the answers decides which buyer gets the
// next free connection of the program's pool. When Pulse.Seq had the value `ordered`, the servers reported that no
// other answer will come. So the order is certain as long as Seq keeps this value.
func (d *delivery) uncertain(now gates.Commands, ordered int64) bool {
	return d.programs.Instances.Shared() && len(now.Flying) > 0 && d.programs.Gates.Pulse.Seq() != ordered && !slices.ContainsFunc(now.Answered, d.isCurrent)
}

// attribute finds the buyer and the name of each command that has arrived, and admits the command.
func (d *delivery) attribute() (come []*gates.Op, _ error) {
	if d.programs.Instances.Shared() {
		if err := d.whose.answered(); err != nil {
			return nil, err
		}
	}
	come = d.programs.Gates.Table.Now().Fresh
	// Values get their names in the order of this list. So that order must not depend on values that differ between runs.
	slices.SortStableFunc(come, func(a, b *gates.Op) int {
		return cmp.Or(cmp.Compare(d.names.Blank(a.Text), d.names.Blank(b.Text)), a.Came.Compare(b.Came))
	})
	for _, o := range come {
		if o.Buyer == 0 {
			if err := d.whose.whose(o); err != nil {
				return nil, err
			}
		}
		if d.buyers.Of(o.Buyer).Crashed {
			return nil, naming.Void("a program that was killed sends a command", "%s", o.Of())
		}
		o.Shown = d.names.Shown(o.Text)
		o.Name = d.names.OfShown(o.Shown)
		d.buyers.Of(o.Buyer).Begun = true
		if d.guard.on() {
			d.steps[gates.TemplateOf(o.Command)] = true
		}
		d.programs.Gates.Table.Admit(o)
	}
	return come, nil
}

// A pool may open a connection by itself, for example every 30 seconds, and set it up: SET autocommit=1. The step at
// which such a command comes would depend on the clock. But a new connection has no transaction, so the command changes
// nothing that another connection sees. If no buyer waits for it, it passes at once and is no step.

// setUp lets such commands pass, and reports whether there were any.
func (d *delivery) setUp() (passed bool) {
	table := d.programs.Gates.Table
	if d.programs.Instances.Shared() { // the command's buyer is not certain
		return false
	}
	for _, o := range table.Now().Held {
		if !o.SetsUp || o.Noted || o.Behind || d.waitsFor(o, d.buyers.Of(o.Buyer)) { // if the command was already offered as a step, it remains a step
			continue
		}
		d.buyers.Current, passed = o.Buyer, true
		table.Pass(o)
	}
	return passed
}

// waitsFor reports whether the buyer may be waiting for this command: it has no answer yet, and no command on another
// connection.
func (d *delivery) waitsFor(o *gates.Op, b *client.Buyer) bool {
	now := d.programs.Gates.Table.Now()
	now.Fresh = nil
	other := func(other *gates.Op) bool { return other.Buyer == b.ID && other.Conn() != o.Conn() }
	return d.buyers.IsWaiting(b) && !slices.ContainsFunc(now.All(), other)
}

// A ping, such as SELECT 1, is no step, with one exception in a shared instance. If the ping's buyer has a transaction
// or a lock on another connection, the program's pool may give that connection to another buyer. Then the ping is a
// step, so the other buyer can move first.

// free lets all commands pass that are no step, and reports whether there were any.
func (d *delivery) free() (passed bool) {
	for _, o := range d.programs.Gates.Table.Now().Fresh {
		if o.Free && !d.mayLend(o) {
			d.programs.Gates.Pass(o)
			passed = true
		}
	}
	return passed
}

// mayLend reports whether the buyer of command o may have a transaction or a lock on another connection.
func (d *delivery) mayLend(o *gates.Op) bool {
	all := d.whose.senders()
	keep := slices.DeleteFunc(slices.Clone(all), func(b *client.Buyer) bool {
		return !d.waitsFor(o, b) || !d.whose.keeps(b, o.Conn()) && !d.strays.keeps(b, o.Conn())
	})
	if len(keep) == len(all) {
		return len(all) > 0
	}
	would, may := d.whose.expected(keep, d.names.Usual(d.names.Of(o.Text)))
	return len(would)+len(may) > 0
}

// take processes the answer to a command before it is delivered.
func (d *delivery) take(ctx context.Context, o *gates.Op) error {
	protocol := o.Conn().Protocol
	back := d.programs.Backends.Of(o.Conn())
	if err := back.Answered(ctx, o); err != nil {
		return err
	}
	if o.Answer.Changed {
		if err := back.After(ctx); err != nil {
			return err
		}
		if protocol == "postgres" {
			if err := d.programs.Gates.Notices.Hear(ctx); err != nil {
				return err
			}
		}
	}
	if o.Push {
		d.polling.Changed(protocol) // the message may make a polling buyer's retry succeed
		d.learned.pushed = true
		d.record.pushed(o)
		return nil
	}
	if o.Committing && o.Answer.Failed { // the server has refused the commit
		o.Known = false
	}
	shown := d.learn(o)
	d.strays.answered(o, shown)
	d.polling.Tried(o.Buyer, retry.Try{Name: o.Name, Answer: shown, Server: protocol, Changed: o.Answer.Changed})
	d.snapshot.answered(o.Conn(), o.Text)
	d.loop.Add(retry.Step{Buyer: o.Buyer, Name: o.Name, Answer: shown}, o.Answer.Changed)
	if d.programs.Instances.Shared() {
		d.whose.transaction(o)
		d.programs.Gates.Table.HoldAll(len(d.whose.open)+len(d.strays.taken) > 0)
		d.pause.carried(o)
		d.whose.continues(o, shown)
	}
	if d.record.Observe {
		d.answers = append(d.answers, exchange{o.Shown, protocol, d.names.Answer(o.Text, cmp.Or(o.Answer.Whole, o.Answer.Text)), d.usage(o)})
	}
	if o.Answer.Changed && backend.Defines(o.Text) {
		d.programs.Code.Read(ctx, d.programs.Servers)
	}
	d.rows.Answered(gates.ForRows(o)[0])
	d.record.answered(o)
	d.leftover.answered(o)
	return nil
}

// learn gives names to the values of an answer, once. It returns the answer as text for the user.
func (d *delivery) learn(o *gates.Op) string {
	if !o.Known {
		for _, value := range o.Answer.Made {
			d.learned.short = d.names.Made(o.Text, value) || d.learned.short
		}
		for _, value := range d.programs.Code.Transactions(o) {
			d.names.Made(o.Text, value)
		}
		o.Result, o.Known = d.record.answerOf(o), true
	}
	return o.Result
}

// executed processes the results of commands that were executed in this step and not committed yet.
func (d *delivery) executed(ctx context.Context) error {
	for _, o := range d.programs.Gates.Table.Now().Uncommitted {
		if o.Known {
			continue
		}
		if err := d.programs.Backends.Of(o.Conn()).Answered(ctx, o); err != nil {
			return err
		}
		d.learn(o)
		d.record.executed(o)
		d.leftover.answered(o)
	}
	return nil
}
