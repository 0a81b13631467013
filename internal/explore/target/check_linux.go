package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/rows"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/target/retry"
)

// Check resets the state, looks for a rule that is broken before any buyer, and runs each buyer alone.
func (x *Runner) Check(ctx context.Context) (c Check, err error) {
	c.Servers = x.servers.Versions()
	x.ctx = ctx
	if err := x.reset(ctx); err != nil {
		return c, err
	}
	atReset, err := x.servers.Never(ctx, app.Told{})
	if err != nil {
		return c, err
	}
	if f := first(atReset, false); f != nil {
		return c, errAtReset(f)
	}
	if x.watched, _, err = x.servers.Watch(ctx); err != nil {
		return c, err
	}
	if err := x.rehearsal.warm(ctx, x.instances.all...); err != nil {
		return c, err
	}
	if x.guard.on() {
		x.guard.begin(ctx)
	}
	if err := x.ownTraffic.look(ctx); err != nil {
		return c, err
	}
	defer func() {
		c.Pollers = x.ownTraffic.pollers()
		if len(c.Pollers) > 0 {
			c.Ignore = x.ownTraffic.entries(c.Pollers, c.commands())
		}
	}()
	if x.byRows() {
		if x.catalog, err = rows.Read(ctx, x.servers.SQL("postgres"), x.app.Never); err != nil {
			x.catalog = nil // a user who may not read it gets a search without footprints
		}
	}
	steps, check := 0, checker{x}
	for n := range x.app.Buyers {
		alone, err := check.alone(ctx, n+1)
		if err != nil {
			return c, err
		}
		if err := check.compare(ctx, &alone); err != nil {
			return c, err
		}
		c.Buyers = append(c.Buyers, alone)
		steps += len(alone.Commands) + 1 // the request, too
	}
	x.steps = retry.StepLimit(steps)
	if steps <= longProgram {
		x.catalog = nil
	} else if x.catalog != nil {
		var used [][]rows.Used
		for _, a := range c.Buyers {
			used = append(used, a.used)
		}
		for i, meets := range x.catalog.Learn(used, x.short) {
			c.Buyers[i].Meets = meets
		}
	}
	if d := (suspectRules{first(atReset, true), c.Buyers}); d.any() {
		found, err := check.inTurn(ctx)
		if err == nil {
			err = d.decide(found)
		}
		if err != nil {
			return c, err
		}
	}
	x.coarse = x.short
	return c, nil
}

// A checker runs the buyers of Check, each alone.
type checker struct{ *Runner }

// compare runs the buyer again, and learns which values of its commands and answers differ. A run with
// another command, such as the refresh of a cache, cannot be compared with one that lacks it. Then compare
// runs the buyer up to mostComparisons times, until two of its runs have the same commands.
func (x checker) compare(ctx context.Context, first *Alone) error {
	before := []Alone{*first}
	for len(before) <= mostComparisons && first.Why == "" {
		again, err := x.alone(ctx, first.Buyer)
		if err != nil {
			return err
		}
		if again.Why == "" && slices.ContainsFunc(before, func(one Alone) bool { return x.compared(first, one, again) }) {
			break
		}
		before = append(before, again)
	}
	if x.shared && len(first.Varies) > 0 { // the habits have the values of both runs
		_, err := x.alone(ctx, first.Buyer)
		return err
	}
	return nil
}

const mostComparisons = 3

// compared learns which values differ between two runs of a buyer, and records them in first. It returns
// false, and learns nothing, if the runs have different commands.
func (x checker) compared(first *Alone, one, other Alone) bool {
	same := func(a, b exchange) bool {
		return a.server == b.server && naming.PlaceOf(a.command, "") == naming.PlaceOf(b.command, "")
	}
	if one.Why != "" || !slices.EqualFunc(one.answers, other.answers, same) {
		return false
	}
	for i, a := range one.answers {
		b := other.answers[i]
		at := naming.PlaceOf(a.command, "")
		if !x.varying.Learn(at, a.command, b.command) {
			first.Why = fmt.Sprintf("a value that differs each time cannot be found in its command %q, which was then %q; write a pattern for it in `random:` of the file", naming.Short(a.command), naming.Short(b.command))
			break
		}
		if a.command != b.command {
			first.Varies = append(first.Varies, a.command)
		}
		_ = x.varying.Learn(naming.PlaceOf(a.command, ":"), a.answer, b.answer)
	}
	return true
}

// alone resets the state, runs one buyer step by step, and checks its answer and the rules.
func (x checker) alone(ctx context.Context, id int) (a Alone, err error) {
	if err := x.rehearsal.recover(ctx); err != nil {
		return a, err
	}
	if err := x.reset(ctx); err != nil {
		return a, err
	}
	if x.catalog != nil {
		if err := x.catalog.Sequences(ctx, x.servers.SQL("postgres")); err != nil {
			return a, err
		}
		defer func() {
			err = errors.Join(err, x.catalog.Sequences(ctx, x.servers.SQL("postgres")))
		}()
	}
	return x.through(ctx, id, func(a *Alone, me *buyer) error {
		switch {
		case me.err != nil:
			a.Why = "its request fails: " + me.err.Error() + x.instances.of(id).said()
			return nil
		case me.reply.failed():
			a.Why = "it is answered " + a.Answer + x.instances.of(id).said()
			if x.app.Attach != nil {
				a.Why += "; a running program must use the gates as its servers, and reconnect when a connection is broken"
			}
			return nil
		}
		var told app.Told
		count(&told, me.reply, me.err, x.app.Sold)
		a.Sold = told.Sold > 0
		found, err := x.servers.Never(ctx, told)
		if f := first(found, false); f != nil {
			a.breaks(f)
		}
		a.doubted = first(found, true)
		return err
	})
}

// inTurn runs all buyers, one after the other, and returns the rules that are broken after the last.
func (x checker) inTurn(ctx context.Context) (found []app.Finding, err error) {
	if err := x.rehearsal.recover(ctx); err != nil {
		return nil, err
	}
	if err := x.reset(ctx); err != nil {
		return nil, err
	}
	var told app.Told
	for n := range x.app.Buyers {
		a, err := x.through(ctx, n+1, func(_ *Alone, me *buyer) error {
			count(&told, me.reply, me.err, x.app.Sold)
			return nil
		})
		if err == nil && a.Why != "" {
			err = fmt.Errorf("buyer %d after the others: %s", a.Buyer, a.Why)
		}
		if err != nil {
			return nil, err
		}
	}
	return x.servers.Never(ctx, told)
}

// through runs one buyer step by step. It calls judge once the buyer is answered and the program is
// idle.
func (x checker) through(ctx context.Context, id int, judge func(*Alone, *buyer) error) (a Alone, err error) {
	if err := x.rehearsal.recover(ctx); err != nil {
		return a, err
	}
	b := x.app.Buyers[id-1]
	a = Alone{Buyer: id, Request: b.Method + " " + b.URL}
	x.gateTable.close()
	r := x.newRun(true)
	r.polling.Alone, r.rows = true, rows.NewTracker(x.catalog, r.names, len(r.buyers), true)
	begun := time.Now()
	_, err = conduct.New(alone{r, id}, nil, nil, conduct.Limits{Steps: retry.MaxSteps, Endless: r.repeated.Endless}).Run(ctx, func(p *schedule.Point) (string, error) { return p.FirstMove(), nil })
	a.Took = time.Since(begun)
	for _, s := range r.record.Steps {
		a.Commands = append(a.Commands, Seen{Server: s.Server, Text: s.Command, Result: s.Result})
	}
	a.answers, a.used = r.answers, r.rows.Used()
	for _, h := range x.guard.hidden(r.steps) {
		a.Hidden = append(a.Hidden, h.text)
		if h.ruled {
			a.Hides = h.text
		}
	}
	x.gateTable.mu.Lock()
	a.Passed = slices.Clone(x.gateTable.noted)
	for c := range x.gateTable.bypass.passed {
		a.Ignored = append(a.Ignored, c.text)
	}
	slices.Sort(a.Ignored)
	x.gateTable.mu.Unlock()
	_, void := schedule.AsVoid(err)
	if !void {
		x.habits.learn(&r.whose)
	}
	me := r.buyer(id)
	answered := r.answeredBy(me)
	switch {
	case void:
		a.Why, err = err.Error(), nil
	case err != nil:
	case !answered:
		a.Why = "it is not answered, and nothing moves: it waits for something that no gate sees"
	default:
		if me.err == nil {
			a.Answer = me.reply.text()
		}
		err = judge(&a, me)
	}
	return a, errors.Join(err, r.clearing.finish(ctx, err != nil || !answered))
}

// An alone is a conduct.Subject with one buyer, no other buyer and no event.
type alone struct {
	*run
	id int
}

// Begin implements conduct.Subject.
func (a alone) Begin(ctx context.Context) error {
	if err := a.send(ctx, a.buyer(a.id)); err != nil {
		return err
	}
	return a.settling.settle(ctx)
}

// Moves implements conduct.Subject.
func (a alone) Moves(ctx context.Context) ([]move, error) {
	if err := (repeating{a.settling}).repeat(ctx); err != nil {
		return nil, err
	}
	moves, err := choices{a.run}.ready()
	a.x.solo = max(a.x.solo, a.standing())
	return moves, err
}

// standing returns how many commands would be at the servers at once if all were released now.
func (a alone) standing() int {
	f := a.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.flying)
	for _, o := range f.held {
		if !o.behind {
			n++
		}
	}
	return n
}

// Do implements conduct.Subject.
func (a alone) Do(ctx context.Context, m move) error {
	c := m.Command.Conn()
	if err := a.x.servers.MayFollow(ctx, c.Protocol, c.ID); err != nil {
		return err
	}
	return a.run.Do(ctx, m)
}

// End implements conduct.Subject. The buyer is judged by its answer, see checker.alone.
func (a alone) End(_ context.Context, e *schedule.Ended, err error) error {
	if err == nil && e.Cut {
		err = voided("it goes round in circles", "%s", &a.repeated)
	}
	return err
}

// longProgram is the number of steps of all buyers alone above which the search uses footprints, see package
// rows. Below it, a search is complete without them.
const longProgram = 100

// byRows reports whether the search may use footprints. Each buyer needs an instance of its
// own, whose commands reach the server one after the other. Footprints do not describe events, statements
// that are held inside the server, and transactions with ignored commands.
func (x *Runner) byRows() bool {
	return !x.shared && !x.overlap && len(x.wanted) == 0 && !x.guard.on()
}
