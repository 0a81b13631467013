package own

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
)

// A run is one schedule, from the first command to the last. It implements conduct.Subject, and alone releases
// commands.
type run struct {
	x         *Runner
	conductor *conduct.Conductor[*gate.Op]
	inbox     *inbox
	buyers    buyers
	dogs      *watchdogs
	rest      resting
	passing   passing
	named     namedLocks
	owners    owners
	knows     knowledge
	touched   map[string]bool // Redis nodes that have received a command
	notes     *recorder
	leftover  leftover
	restocked restocking

	outcome sync.WaitGroup
	deadEnd bool   // no move is possible, and a buyer has no answer
	early   bool   // a buyer was refused, and a later buyer could buy
	cut     bool   // some of its goroutines did not end by themselves
	seen    string // result of the last step, if it released two commands together, see releasePair
}

func newRun(x *Runner, buyers int, observe bool) *run {
	r := &run{x: x, inbox: newInbox(), dogs: &watchdogs{}, touched: map[string]bool{}, owners: owners{byKey: map[string]int{}}, notes: newRecorder(observe)}
	r.rest = resting{r: r, severalAtOnce: x.severalAtOnce}
	r.passing, r.leftover = passing{r: r}, leftover{r: r}
	r.knows = newKnowledge(r, buyers)
	return r
}

// buy runs in the buyer's goroutine. Package standstill finds this goroutine by the name of this method.
func (r *run) buy(ctx context.Context, b *buyer) {
	defer r.outcome.Done()
	defer b.cancel(nil)
	if r.x.spec.Shared {
		// The schedule also decides which buyer comes first to a lock in memory, so Buy begins with a step.
		o := &gate.Op{Buyer: b.id, Server: "process", Name: "calls Buy", Text: "calls Buy"}
		b.err = r.x.gates.Pass(o, func() error { o.Changed = true; return ctx.Err() })
	}
	if b.err == nil {
		func() {
			defer recovered(&b.err)
			b.receipt, b.err = b.counter.Buy(ctx, b.order)
		}()
	}
	r.inbox.reports <- report{kind: returned, buyer: b.id}
}

// Begin implements conduct.Subject. Runner.start has already started the buyers.
func (r *run) Begin(ctx context.Context) error {
	if err := r.rest.await(ctx); err != nil {
		return err
	}
	r.notes.locks(r, witness.Step{Stock: r.x.spec.Stock})
	return nil
}

// Moves implements conduct.Subject. It returns the commands at the gates that may be released.
func (r *run) Moves(ctx context.Context) (all []move, err error) {
	for {
		for _, b := range r.buyers {
			own, err := b.moves()
			if err != nil {
				return nil, err
			}
			all = append(all, own...)
		}
		if len(all) > 0 || r.buyers.over() {
			return all, nil
		}
		if passed, err := r.pass(ctx); err != nil || !passed {
			r.deadEnd = err == nil
			return nil, err
		}
	}
}

// Over implements conduct.Subject. It returns true: when Moves returns no move, the run ends without a further event.
func (r *run) Over() bool { return true }

// pass lets time pass if no buyer can move and a buyer waits. It returns false if that changes nothing.
func (r *run) pass(ctx context.Context) (passed bool, err error) {
	met, err := r.knows.meets(ctx)
	if err != nil {
		return false, err
	}
	happened, passed, err := r.passing.time(ctx)
	if err != nil || !passed {
		return false, err
	}
	r.notes.time(happened)
	if err := r.rest.await(ctx); err != nil {
		return false, err
	}
	r.knows.transacted(nil, happened, met)
	r.knows.told = true
	return true, r.knows.heard(ctx, happened)
}

// Describe implements conduct.Subject.
func (r *run) Describe(ctx context.Context, p *schedule.Point, moves []move) {
	p.Seen, p.Begun, p.Fresh, p.Where, p.Told = r.seen, r.buyers.begun, r.fresh, r.buyers.where, r.knows.told
	if r.x.Stated() {
		p.State = func() (schedule.State, error) { return r.knows.state(ctx) }
	}
	if r.notes.Observe {
		p.View = func() (schedule.View, error) { return onlooker{r}.view(ctx, moves) }
	}
}

// fresh implements schedule.Point.Fresh.
func (r *run) fresh(server string) (standing string, fresh bool) {
	if suffix(server) == "" || r.touched[server] {
		return "", false
	}
	return r.buyers.before(server), true
}

// Do implements conduct.Subject.
func (r *run) Do(ctx context.Context, m move) error {
	r.knows.told = false
	r.refuse()
	met, err := r.knows.meets(ctx)
	if err != nil {
		return err
	}
	switch {
	case m.Make != nil:
		err = m.Make(ctx)
	case m.Pair:
		err = r.releasePair(ctx, m)
	default:
		err = r.release(m.Command, gate.Proceed)
	}
	if err == nil {
		err = r.rest.await(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", m.Token, m.Name, err)
	}
	r.knows.told = r.refuse() || r.knows.told
	step := r.knows.exactly(m)
	r.knows.transacted(statement(m), step, met)
	if err := r.knows.heard(ctx, step); err != nil {
		return err
	}
	r.seen = r.buyers.pairCameTo(m)
	return r.notes.after(ctx, r, m)
}

// refuse calls buyers.refuse. It returns false if something else may explain an answer "busy": shared memory, the
// shop's admission control, an event, or an expired lease.
func (r *run) refuse() bool {
	if r.x.spec.Shared || r.x.spec.Front == Admission || r.passing.ranOut || len(r.conductor.Happened()) > 0 {
		return false
	}
	return r.buyers.refuse()
}

// statement returns the command that a move releases, or nil if the move is an event.
func statement(m move) *gate.Op {
	if m.Event != "" {
		return nil
	}
	return m.Command
}

func (r *run) release(o *gate.Op, how gate.Decision) error {
	b, err := r.buyers.find(o.Buyer)
	if err != nil {
		return err
	}
	if !o.Background {
		if b.resting {
			b.resting = false
			clear(b.asks)
		}
		if _, asked := b.asks[o.Server]; !asked && o.Effect != schedule.Local {
			b.asks[o.Server] = b.changes[o.Server]
		}
	}
	r.x.servers.touch(o.Server)
	if suffix(o.Server) != "" {
		r.touched[o.Server] = true
	}
	r.rest.unblocks = r.rest.unblocks || o.Server == gate.SQL && o.Effect == schedule.Writes
	b.steps++
	b.gate = without(b.gate, o)
	b.flying = append(b.flying, o)
	o.Blocked, o.SeenEnds = false, b.ends
	o.Decide(how)
	return nil
}

// releasePair releases two commands together: the second right after the goroutine of the first has sent its command.
//
// The server chooses which command it executes first, whether one waits, and which is the victim of a deadlock. The
// method buyers.pairCameTo describes the result.
func (r *run) releasePair(ctx context.Context, m move) error {
	m.Command.Beside, m.Second.Beside = m.Second, m.Command
	if err := r.release(m.Command, gate.ProceedAloud); err != nil {
		return err
	}
	select {
	case <-r.inbox.sent:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return r.release(m.Second, gate.Proceed)
}

// End implements conduct.Subject.
func (r *run) End(ctx context.Context, e *schedule.Ended, err error) error {
	finishErr := r.finish(context.WithoutCancel(ctx), r.deadEnd && err == nil)
	var stuck stuckError
	if errors.As(finishErr, &stuck) && r.isBreak(ctx, e, err) {
		return r.endStuck(ctx, e, stuck)
	}
	if finishErr != nil || err != nil {
		r.x.attach(nil)
		return errors.Join(err, finishErr)
	}
	if e.Pruned || e.Cut {
		return r.leftover.clean(ctx)
	}
	e.Verdict, e.Why, err = judgement{r.x, r}.verdict(ctx)
	err = errors.Join(err, r.leftover.clean(ctx))
	e.Foreign, e.Early = r.owners.foreign, r.early
	e.Steps, e.Outcomes = r.notes.Steps, r.buyers.outcomes()
	return err
}
