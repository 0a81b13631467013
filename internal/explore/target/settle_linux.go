package target

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/naming"
)

// Times for finding a standstill. None of them decides a step.
const (
	// Between two looks at a program that runs: look at first, later an eighth of the time since the last
	// event, at most longLook. That keeps the looks from taking the processor from the program.
	look, longLook = 20 * time.Microsecond, time.Millisecond
	// A sleep that lasts longer than longestSleep counts as none. The run is void if shorter ones follow one
	// another for mostSleep, which is less than schedule.HangTimeout. For example, V8 collects garbage up to
	// three times, 8 s apart, after a program has become idle.
	longestSleep, mostSleep = 10 * time.Second, 28 * time.Second
	// If no buyer can move and one is inside a program, the explorer waits for timers that end within
	// farTimer. For sleeps that it cannot see it waits blindWait.
	farTimer, blindWait = time.Minute, 2 * time.Second
	// Asking a server which statements wait costs it time, so the first such look comes after a
	// statement has not been answered for this long.
	slowAnswer = 300 * time.Microsecond
)

// voided returns a schedule.Void. why is the same text each time. The details describe this run; values
// that differ between runs are replaced.
func voided(why, details string, args ...any) error {
	return schedule.Void{Why: why, Details: naming.Plain(fmt.Sprintf(details, args...))}
}

// A settling takes a run from one standstill to the next. Only a settling delivers answers.
type settling struct{ rest }

// settle lets the programs and the servers continue until nothing moves by itself. It delivers answers
// one at a time, each followed by a standstill, so only one program runs at a time, even when one
// command unblocks another. It leaves the commands that can be released in gateTable.held.
func (r settling) settle(ctx context.Context) error {
	f := r.x.gateTable
	begun := time.Now()
	sleeping := time.Time{}
	idle := briefTimers{run: r.run}
	lastSeq, lastEvent := f.seq.Load(), begun
	ordered := int64(-1) // f.seq when every released command was answered or waited in its server
	for wait := time.Duration(0); ; f.bell.wait(wait) {
		now := time.Now()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if now.Sub(begun) > schedule.HangTimeout {
			return voided(fmt.Sprintf("no standstill within %s", schedule.HangTimeout), "%s", r.where())
		}
		if seq := f.seq.Load(); seq != lastSeq {
			lastSeq, lastEvent = seq, now
		}
		if err := r.x.guard.look(ctx); err != nil {
			return err
		}
		if f.busy.Load() != 0 || f.notices.missing() {
			wait = longLook
			continue
		}
		if !idle.quiet() {
			wait = r.between(now.Sub(lastEvent))
			continue
		}
		wait = 0 // an answer that is delivered makes the gate table busy
		moves, err := r.handOver(ordered)
		if err == nil && !moves {
			wait = look
			moves, err = r.ending(ctx)
		}
		if err != nil {
			return err
		}
		if moves {
			continue
		}
		waiting, err := r.waiting(ctx, now.Sub(lastEvent))
		if err != nil {
			return err
		}
		if !waiting || f.seq.Load() != lastSeq {
			wait = max(slowAnswer-now.Sub(lastEvent), r.between(now.Sub(lastEvent)))
			continue
		}
		if ordered != lastSeq && r.undelivered() {
			ordered, wait = lastSeq, 0
			continue
		}
		sleeps := r.sleeping()
		made, err := r.pause.look(ctx, sleeps)
		if err != nil {
			return err
		}
		if made {
			wait = 0
			continue
		}
		switch {
		case !sleeps:
			return r.broken()
		case sleeping.IsZero():
			sleeping = now
		case now.Sub(sleeping) > mostSleep:
			return voided(fmt.Sprintf("a buyer inside the program sleeps for longer than %s", longestSleep), "%s", r.where())
		}
		f.wake()
		wait = look * 10
	}
}

// between returns the time between two looks at something that has run for so long.
func (settling) between(since time.Duration) time.Duration {
	return min(max(look, since/8), longLook)
}

// wake reports whether a program may continue by itself.
func (f *gateTable) wake() {
	f.mu.Lock()
	f.still = false
	f.mu.Unlock()
}

// broken returns why the run is void, if it is.
func (r settling) broken() error {
	f := r.x.gateTable
	f.mu.Lock()
	refused, broken := f.refused, f.broken
	f.mu.Unlock()
	switch {
	case refused != nil:
		return refused
	case broken != nil:
		return voided("a program, or a server, hung up on a command", "%s (%v)%s", broken.op.of(), broken.err, r.x.instances.of(broken.op.buyer).said())
	}
	return nil
}

// where says where each buyer without an answer is, for an error.
func (r settling) where() string {
	f := r.x.gateTable
	f.mu.Lock()
	inside := r.inside()
	f.mu.Unlock()
	if len(inside) == 0 {
		return f.where()
	}
	return buyerNames(inside) + " inside the program, " + f.where()
}

// undelivered reports whether an answer is not delivered yet.
func (r settling) undelivered() bool {
	f := r.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.answered) > 0
}

// uncertain reports whether the order of the answers is not certain. The buyer that was released last may have
// unlocked others in the server, whose answers may come before its own. In a shared instance the order of
// delivery decides which connection the program's pool lends next. ordered is the number of the last event
// if the servers say that no other answer will come. uncertain is called with gateTable.mu held.
func (r settling) uncertain(ordered int64) bool {
	f := r.x.gateTable
	return r.x.shared && len(f.flying) > 0 && f.seq.Load() != ordered && !slices.ContainsFunc(f.answered, func(o *op) bool { return o.buyer == r.current })
}

// handOver attributes the commands that have come, and delivers one answer if there is any: that of the
// buyer that was released last, else the first buyer's. See uncertain.
func (r settling) handOver(ordered int64) (moved bool, _ error) {
	f := r.x.gateTable
	f.mu.Lock()
	come, err := r.attribute()
	if err == nil && r.setUp() {
		f.mu.Unlock()
		r.rows.Arrived(forRows(come))
		return true, nil
	}
	if err != nil || len(f.answered) == 0 {
		f.mu.Unlock()
		r.rows.Arrived(forRows(come))
		return false, err
	}
	for _, o := range f.answered { // the connection of a pushed message identifies its buyer
		if o.buyer == 0 {
			o.buyer = r.current
		}
	}
	if r.uncertain(ordered) {
		f.mu.Unlock()
		r.rows.Arrived(forRows(come))
		return false, nil
	}
	inOrder(f.answered)
	at := max(0, slices.IndexFunc(f.answered, func(o *op) bool { return o.buyer == r.current }))
	o := f.answered[at]
	f.answered = slices.Delete(f.answered, at, at+1)
	delete(f.byCmd, o.Command)
	f.happened()
	f.handed, f.handedTo = o.Conn().Program(), o.Conn().Buyer
	f.mu.Unlock()
	r.rows.Arrived(forRows(come))
	if err := r.take(o); err != nil {
		return false, err
	}
	r.current = o.buyer
	r.markRunnable(o.buyer)
	if o.Push && r.x.shared {
		r.current = 0 // any buyer that listens
	}
	o.Deliver()
	return true, nil
}

// attribute returns the commands that have come. It is called with gateTable.mu held.
func (r settling) attribute() (come []*op, _ error) {
	f := r.x.gateTable
	if r.x.shared {
		if err := r.whose.answered(); err != nil {
			return nil, err
		}
	}
	if len(f.fresh) == 0 {
		return nil, nil
	}
	// Values that differ between runs are named in this order, so it must not depend on them.
	slices.SortStableFunc(f.fresh, func(a, b *op) int {
		return cmp.Or(cmp.Compare(r.names.Blank(a.Text), r.names.Blank(b.Text)), a.Came.Compare(b.Came))
	})
	for _, o := range f.fresh {
		if o.buyer == 0 {
			if err := r.whose.whose(o); err != nil {
				return nil, err
			}
		}
		if r.buyer(o.buyer).crashed {
			return nil, voided("a program that was killed sends a command", "%s", o.of())
		}
		o.shown = r.names.Shown(o.Text)
		o.name = r.names.OfShown(o.shown)
		r.buyer(o.buyer).begun = true
		if r.x.guard.on() {
			r.steps[templateOf(o.Command)] = true
		}
		f.held = append(f.held, o)
	}
	come, f.fresh = f.fresh, nil
	inOrder(f.held)
	return come, nil
}

// inOrder sorts commands by buyer and name, those of timers last. A program with several threads sends
// in a different order in each run, so the order of arrival must not decide. Equal commands stand in the
// order of the rows that they use, such as two COMMITs. Otherwise they keep the order in which the program
// sent them: only a program with one thread repeats that, and nothing else tells them apart.
func inOrder(commands []*op) {
	slices.SortStableFunc(commands, func(a, b *op) int {
		return cmp.Or(cmp.Compare(a.buyer, b.buyer), compareBool(a.timed, b.timed), cmp.Compare(a.name, b.name), cmp.Compare(a.usage.Key, b.usage.Key), a.Came.Compare(b.Came))
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// ending reports whether a server has not yet rolled back the transaction of a connection that its
// program has closed, since a buyer may wait for that. It also returns true when the last of them has
// just ended, so that settle looks again.
func (r settling) ending(ctx context.Context) (bool, error) {
	f := r.x.gateTable
	f.mu.Lock()
	closed := slices.Clone(f.conns.ending)
	f.mu.Unlock()
	for _, c := range closed {
		gone, err := r.x.backends[c.Protocol].gone(ctx, c.ID)
		if err != nil || !gone {
			return true, err
		}
		r.polling.ChangedBy(c.Buyer, c.Protocol) // a waiting buyer may try again
		r.rows.Closed(c)
		f.mu.Lock()
		f.conns.ended(c)
		f.happened()
		f.mu.Unlock()
	}
	return len(closed) > 0, nil
}

// waiting asks the servers whether every released command waits there for another connection. A command
// whose wait the schedule has ended does not: its server may take a while to notice that.
func (r settling) waiting(ctx context.Context, silence time.Duration) (bool, error) {
	f := r.x.gateTable
	f.mu.Lock()
	flying := slices.Clone(f.flying)
	for c := range f.conns.joined { // a command that waits for one of these connections waits for a buyer
		r.x.backends[c.Protocol].joined(c.ID)
	}
	f.mu.Unlock()
	if len(flying) == 0 {
		return true, nil
	}
	if silence < slowAnswer && slices.ContainsFunc(flying, func(o *op) bool { return !o.waits }) {
		return false, nil
	}
	named := slices.ContainsFunc(flying, func(o *op) bool { return o.Named })
	seen := map[string]map[int64]bool{}
	all := true
	for _, o := range flying {
		protocol := o.Conn().Protocol
		if seen[protocol] == nil {
			ids, err := r.x.backends[protocol].waiting(ctx, named)
			if err != nil {
				return false, err
			}
			if ids == nil {
				ids = map[int64]bool{}
			}
			seen[protocol] = ids
		}
		o.waits = seen[protocol][o.Conn().ID] && !o.timedOut
		if o.waits && o.Named {
			granted, err := r.x.backends[protocol].granted(ctx, o)
			if err != nil {
				return false, err
			}
			o.waits = !granted
		}
		all = all && o.waits
	}
	return all, nil
}

// wakes returns at once if a command can be released. If not, and a buyer is inside a program, it waits
// until no timer is left that could wake the program. So a sleep of any length is distinguished from a
// dead end.
func (r settling) wakes(ctx context.Context) error {
	f := r.x.gateTable
	for begun := time.Now(); ; {
		f.mu.Lock()
		asleep := len(f.held)+len(f.uncommitted) == 0 && len(r.inside()) > 0
		f.mu.Unlock()
		if !asleep {
			return nil
		}
		for since, moves := time.Now(), f.moves(); f.moves() == moves; time.Sleep(time.Millisecond) {
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case time.Since(begun) > 2*farTimer:
				return voided(fmt.Sprintf("a buyer inside the program sleeps for longer than %s", farTimer), "%s", r.where())
			case time.Since(since) > blindWait && r.asleep() && !r.nappingWithin(farTimer):
				return nil
			}
		}
		if err := r.settle(ctx); err != nil {
			return err
		}
	}
}
