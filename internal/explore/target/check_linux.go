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
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/target/retry"
	"github.com/oversell/oversell/internal/explore/witness"
)

// Check resets the state, checks that no rule is broken before a buyer comes, and then runs each buyer alone.
func (x *Runner) Check(ctx context.Context) (c Check, err error) {
	servers, own := x.programs.Servers, x.programs.Gates.OwnTraffic
	c.Servers = servers.Versions()
	if err := x.programs.Reset(ctx); err != nil {
		return c, err
	}
	atReset, err := servers.Never(ctx, app.Told{})
	if err != nil {
		return c, err
	}
	if f := first(atReset, false); f != nil {
		return c, errAtReset(f)
	}
	if x.learned.serial, err = newSerialOracle(ctx, x); err != nil {
		return c, err
	}
	if x.watched, _, err = servers.Watch(ctx); err != nil {
		return c, err
	}
	if err := x.rehearsal.Warm(ctx, x.programs.Instances.All...); err != nil {
		return c, err
	}
	x.programs.Code.Read(ctx, servers)
	if x.guard.on() {
		x.guard.begin(ctx)
	}
	if err := own.Look(ctx, x.rehearsal.Watch); err != nil {
		return c, err
	}
	defer func() {
		c.Pollers = own.Pollers()
		if len(c.Pollers) > 0 {
			c.Ignore = own.Entries(c.Pollers, c.commands())
		}
	}()
	if x.byRows() {
		if x.learned.catalog, err = rows.Read(ctx, servers.SQL("postgres"), x.programs.App.Never); err != nil {
			x.learned.catalog = nil // the user may have no right to read the catalog; then the search cannot tell which rows a command uses
		}
	}
	steps, check := 0, checker{x}
	for n := range x.programs.App.Buyers {
		alone, err := check.alone(ctx, n+1)
		if err != nil {
			return c, err
		}
		if err := check.compare(ctx, &alone); err != nil {
			return c, err
		}
		c.Buyers = append(c.Buyers, alone)
		steps += len(alone.Commands) + 1 // plus 1, since sending the request is a step, too
	}
	x.steps = retry.StepLimit(steps)
	if steps <= longProgram && !x.anyOrder() {
		x.learned.catalog = nil
	} else if x.learned.catalog != nil {
		var used [][]rows.Used
		for _, a := range c.Buyers {
			used = append(used, a.used)
		}
		for i, meets := range x.learned.catalog.Learn(used, x.learned.short) {
			c.Buyers[i].Meets = meets
		}
	}
	if d := (suspectRules{first(atReset, true), c.Buyers}); d.any() {
		found, err := check.rulesInTurn(ctx)
		if err == nil {
			err = d.decide(found)
		}
		if err != nil {
			return c, err
		}
	}
	x.racing = slices.DeleteFunc(slices.Clone(c.Buyers), func(a Alone) bool { return a.Races == "" })
	x.learned.coarse = x.learned.short
	if x.learned.serial != nil && !slices.ContainsFunc(c.Buyers, func(a Alone) bool { return a.Why != "" }) {
		if c.Orders, err = x.learned.serial.learn(ctx, check); err != nil {
			return c, err
		}
		c.Uncompared, c.Unmatched = x.learned.serial.LeftOut(), x.learned.serial.unmatched
	}
	return c, nil
}

type checker struct{ *Runner }

// compare runs the buyer again, and learns which values of its commands and answers differ. It can compare only runs
// with the same commands. A run may have others, for example when a cache is refreshed. So compare runs the buyer up to
// mostComparisons times, until two runs have the same commands.
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
	if x.programs.Instances.Shared() && len(first.Varies) > 0 { // learn the buyer's usual commands again, now with names in place of the values that vary
		_, err := x.alone(ctx, first.Buyer)
		return err
	}
	return nil
}

const mostComparisons = 3

// compared learns which values differ between the runs `one` and `other` of a buyer. It adds the commands that contain
// them to first.Varies. If the runs have different commands, it returns false and learns nothing.
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
		if !x.learned.varying.Learn(at, a.command, b.command) {
			first.Why = fmt.Sprintf("a value that differs each time cannot be found in its command %q, which was then %q; write a pattern for it in `random:` of the file", naming.Short(a.command), naming.Short(b.command))
			break
		}
		if a.command != b.command {
			first.Varies = append(first.Varies, a.command)
		}
		_ = x.learned.varying.Learn(naming.PlaceOf(a.command, ":"), a.answer, b.answer)
	}
	return true
}

// alone resets the state, runs one buyer step by step, and checks its answer and the rules.
func (x checker) alone(ctx context.Context, id int) (a Alone, err error) {
	if err := x.recovery.Recover(ctx); err != nil {
		return a, err
	}
	if err := x.programs.Reset(ctx); err != nil {
		return a, err
	}
	if catalog := x.learned.catalog; catalog != nil {
		db := x.programs.Servers.SQL("postgres")
		if err := catalog.Sequences(ctx, db); err != nil {
			return a, err
		}
		defer func() {
			err = errors.Join(err, catalog.Sequences(ctx, db))
		}()
	}
	return x.through(ctx, id, func(a *Alone, reply client.Reply, failed error) error {
		switch {
		case failed != nil:
			a.Why = "its request fails: " + failed.Error() + x.programs.Instances.Of(id).Said()
			return nil
		case reply.Failed():
			a.Why = "it is answered " + a.Answer + x.programs.Servers.Unmet() + x.programs.Instances.Of(id).Said()
			if x.programs.App.Attach != nil {
				a.Why += "; a running program must use the gates as its servers, and reconnect when a connection is broken"
			}
			return nil
		}
		var told app.Told
		client.Count(&told, reply, failed, x.programs.App)
		a.Sold = told.Sold > 0
		found, err := x.programs.Servers.Never(ctx, told)
		if f := first(found, false); f != nil {
			a.breaks(f)
		}
		a.doubted = first(found, true)
		return err
	})
}

// rulesInTurn runs all buyers, one after the other, and returns the rules that are broken after the last buyer.
func (x checker) rulesInTurn(ctx context.Context) ([]witness.Finding, error) {
	var told app.Told
	var order []int
	for n := range x.programs.App.Buyers {
		order = append(order, n+1)
	}
	if err := x.inTurn(ctx, order, func(_ *Alone, reply client.Reply, failed error) {
		client.Count(&told, reply, failed, x.programs.App)
	}); err != nil {
		return nil, err
	}
	return x.programs.Servers.Never(ctx, told)
}

// inTurn runs the buyers in the given order, one after the other. It calls onAnswer after every answer.
func (x checker) inTurn(ctx context.Context, order []int, onAnswer func(a *Alone, reply client.Reply, failed error)) error {
	if err := x.recovery.Recover(ctx); err != nil {
		return err
	}
	if err := x.programs.Reset(ctx); err != nil {
		return err
	}
	for _, id := range order {
		var reply client.Reply
		var failed error
		a, err := x.through(ctx, id, func(_ *Alone, r client.Reply, err error) error { reply, failed = r, err; return nil })
		switch {
		case err != nil:
			return err
		case a.Why != "":
			return fmt.Errorf("buyer %d after the others: %s", a.Buyer, a.Why)
		}
		onAnswer(&a, reply, failed)
	}
	return nil
}

// through runs one buyer step by step. When the buyer is answered and the program is idle, it calls judge.
func (x checker) through(ctx context.Context, id int, judge func(a *Alone, reply client.Reply, failed error) error) (a Alone, err error) {
	if err := x.recovery.Recover(ctx); err != nil {
		return a, err
	}
	b := x.programs.App.Buyers[id-1]
	a = Alone{Buyer: id, Request: b.Method + " " + b.URL, Commands: []gates.Seen{}}
	x.programs.Gates.Close()
	r := x.newRun(true, true)
	begun := time.Now()
	_, err = conduct.New(alone{r, id, &a.AtOnce}, nil, nil, conduct.Limits{Steps: retry.MaxSteps, Endless: r.delivery.loop.Endless}).Run(ctx, func(p *schedule.Point) (string, error) { return p.FirstMove(), nil })
	a.TookMS = float64(time.Since(begun).Microseconds()) / 1000
	x.solo = max(x.solo, a.AtOnce)
	for _, s := range r.record.Steps {
		a.Commands = append(a.Commands, gates.Seen{Server: s.Server, Text: s.Command, Result: s.Result})
	}
	a.answers, a.used = r.delivery.answers, r.rows.Used()
	a.ignored = x.programs.Gates.Bypass.Ignored()
	for _, h := range x.guard.hidden(r.delivery.steps, a.ignored) {
		a.Hidden = append(a.Hidden, h.text)
		if h.ruled {
			a.Hides = h.text
		}
	}
	a.Passed = append([]string{}, x.programs.Gates.Bypass.Ungated()...)
	for _, c := range a.ignored {
		a.Ignored = append(a.Ignored, c.Text)
	}
	slices.Sort(a.Ignored)
	_, void := schedule.AsVoid(err)
	if !void {
		x.learned.habits.learn(r.whose)
	}
	reply, answered, failed := r.buyers.Answer(r.buyers.Of(id))
	switch {
	case void:
		a.Why, err = err.Error(), nil
	case err != nil:
	case !answered:
		a.Why = "it is not answered, and nothing moves: it waits for something that no gate sees"
	default:
		if failed == nil {
			a.Status, a.Answer = reply.Status, reply.Text()
		}
		err = judge(&a, reply, failed)
	}
	return a, errors.Join(err, r.clearing.Finish(ctx, err != nil || !answered))
}

// An alone is a conduct.Subject that runs one buyer, without events.
type alone struct {
	*run
	id   int
	most *int // maximum number of this buyer's commands that could be at the servers at once
}

// Begin implements conduct.Subject.
func (a alone) Begin(ctx context.Context) error {
	return a.send(ctx, a.buyers.Of(a.id))
}

// Moves implements conduct.Subject.
func (a alone) Moves(ctx context.Context) ([]move, error) {
	if err := a.repeating.repeat(ctx); err != nil {
		return nil, err
	}
	moves, err := a.choices.ready()
	now := a.programs.Gates.Table.Now()
	behind := func(o *gates.Op) bool { return o.Behind }
	*a.most = max(*a.most, len(now.Flying)+len(slices.DeleteFunc(now.Held, behind)))
	return moves, err
}

// Do implements conduct.Subject.
func (a alone) Do(ctx context.Context, m move) error {
	c := m.Command.Conn()
	if err := a.programs.Servers.MayFollow(ctx, c.Protocol, c.ID); err != nil {
		return err
	}
	return a.run.Do(ctx, m)
}

// End implements conduct.Subject. It does not judge the run: checker.alone judges the buyer's answer.
func (a alone) End(_ context.Context, e *schedule.Ended, err error) error {
	if err == nil && e.Cut {
		err = naming.Void("it goes round in circles", "%s", &a.delivery.loop)
	}
	return err
}

// longProgram is a limit for the total number of steps that the buyers take when each runs alone. Above this limit, the
// search needs footprints: lists of the rows that each command uses (package rows). Shorter searches are complete
// without footprints, unless the buyers send parallel commands.
const longProgram = 100

// byRows reports whether the search may use footprints, the lists of rows that commands use (package rows). A footprint
// does not describe a transaction that contains ignored commands.
func (x *Runner) byRows() bool { return x.plain() && !x.guard.on() }

// letters reports whether the tokens have letters, see choices.letter. It does not depend on flags: a replay string
// without an event does not say that the search had --events.
func (x *Runner) letters() bool {
	return x.programs.App.AnyOrder && !x.programs.Instances.Shared()
}

// anyOrder reports whether the search may leave out orders of one buyer's parallel commands (`answers: accepted`).
func (x *Runner) anyOrder() bool { return x.plain() && x.programs.App.AnyOrder }

// plain reports whether each buyer has its own instance and each step is a whole command: no events, no statements held
// inside the server.
func (x *Runner) plain() bool {
	return !x.programs.Instances.Shared() && !x.spec.Overlap && len(x.spec.Events) == 0
}
