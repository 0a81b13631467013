package run

import (
	"context"
	"fmt"
	"sync"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/purchase"
)

// A Run is one schedule, from the first command to the last.
type Run struct {
	x            *Runner
	inbox        *inbox
	buyers       buyers
	dogs         *watchdogs
	rest         resting
	passing      passing
	named        namedLocks
	owners       owners
	names        secrets // of random values, for the state
	memories     []*memory
	books        books
	commits      int // of transactions that had written
	transactions transactions
	told         bool            // the last step has brought messages, or time has passed by itself after it
	touched      map[string]bool // nodes to which a command was sent
	notes        *recorder

	struck  map[schedule.Event]int // events so far
	outcome sync.WaitGroup         // of the buyers' goroutines
	early   bool                   // see schedule.Ended
	cut     bool                   // not all of its goroutines ended as they would have
	seen    string                 // what the last step came to, where a server decided it, see releasePair
}

func newRun(x *Runner, buyers int) *Run {
	r := &Run{x: x, inbox: newInbox(), dogs: &watchdogs{}, struck: map[schedule.Event]int{}, touched: map[string]bool{}, owners: owners{byKey: map[string]int{}}, names: secrets{}}
	r.rest = resting{r: r, severalAtOnce: x.severalAtOnce}
	r.passing = passing{r: r}
	r.memories = newMemories(buyers, x.spec.Shared)
	r.transactions = newTransactions()
	return r
}

// buy runs in the buyer's goroutine. Its name marks the goroutine, see standstill.
func (r *Run) buy(ctx context.Context, b *buyer) {
	defer r.outcome.Done()
	defer b.cancel(nil)
	if r.x.spec.Shared {
		// Who comes first to a lock in memory is a choice too.
		o := &gate.Op{Buyer: b.id, Server: "process", Name: "calls Buy", Text: "calls Buy"}
		b.err = r.x.gates.Pass(o, func() error { o.Changed = true; return ctx.Err() })
	}
	if b.err == nil {
		b.receipt, b.err = b.strategy.Buy(ctx, purchase.Order{Product: r.x.spec.Product, Purchaser: b.name, Amount: max(r.x.spec.Units, 1)})
	}
	r.inbox.events <- event{kind: returned, buyer: b.id}
}

// play makes the steps. deadEnd: somebody is left whom nothing can wake.
func (r *Run) play(ctx context.Context, choose schedule.Chooser, notes *recorder) (e schedule.Ended, deadEnd bool, err error) {
	r.notes = notes
	if err := r.rest.await(ctx); err != nil {
		return e, false, err
	}
	notes.locks(r, witness.Step{Stock: r.x.spec.Stock})
	for depth := 0; ; {
		actions, err := r.actions(ctx)
		if err != nil {
			return e, false, err
		}
		if !canMove(actions) {
			passed, err := r.pass(ctx, notes)
			if err != nil {
				return e, false, err
			}
			if passed {
				continue
			}
			e.Pruned, err = r.known(ctx, choose, depth)
			return e, err == nil && !r.buyers.over(), err
		}
		if depth == schedule.MaxSteps {
			e.Cut = true
			return e, false, nil
		}
		a, err := r.choose(ctx, choose, depth, actions)
		if err != nil {
			return e, false, err
		}
		if a == nil {
			e.Pruned = true
			return e, false, nil
		}
		r.told = false
		met, err := r.meets(ctx)
		if err != nil {
			return e, false, err
		}
		if err := r.do(ctx, *a); err != nil {
			return e, false, fmt.Errorf("%s %s: %w", a.Token, a.Name, err)
		}
		step := r.exactly(a)
		r.transacted(a.statement(), step, met)
		if err := r.heard(ctx, step); err != nil {
			return e, false, err
		}
		r.seen = r.cameTo(*a)
		e.Tokens = append(e.Tokens, a.Token)
		e.Concurrent = e.Concurrent || a.Pair
		if err := notes.after(ctx, r, *a); err != nil {
			return e, false, err
		}
		depth++
	}
}

// pass lets time pass where nobody can move and somebody waits; false where nothing
// came of it.
func (r *Run) pass(ctx context.Context, notes *recorder) (passed bool, err error) {
	if r.buyers.over() {
		return false, nil
	}
	met, err := r.meets(ctx)
	if err != nil {
		return false, err
	}
	happened, passed, err := r.passing.time(ctx)
	if err != nil || !passed {
		return false, err
	}
	notes.time(happened)
	if err := r.rest.await(ctx); err != nil {
		return false, err
	}
	r.transacted(nil, happened, met)
	r.told = true
	return true, r.heard(ctx, happened)
}

// known asks whether it need not be judged how the schedule has ended.
func (r *Run) known(ctx context.Context, choose schedule.Chooser, depth int) (bool, error) {
	token, err := choose(r.point(ctx, depth, nil))
	return token == "", err
}

// point is where the schedule stands.
func (r *Run) point(ctx context.Context, depth int, actions []Action) *schedule.Point {
	p := &schedule.Point{Depth: depth, Seen: r.seen, Begun: r.buyers.begun, Fresh: r.fresh, Where: r.buyers.where, Told: r.told}
	if r.x.Stated() {
		p.State = func() (schedule.State, error) { return r.state(ctx) }
	}
	if r.notes.observe {
		p.View = func() (schedule.View, error) { return r.view(ctx, actions) }
	}
	return p
}

// choose asks for the next step; nil where the schedule need not be gone on with.
func (r *Run) choose(ctx context.Context, choose schedule.Chooser, depth int, actions []Action) (*Action, error) {
	p := r.point(ctx, depth, actions)
	p.Choices = make([]schedule.Choice, len(actions))
	for i, a := range actions {
		p.Choices[i] = a.Choice
	}
	token, err := choose(p)
	if token == "" || err != nil {
		return nil, err
	}
	a, ok := pick(actions, token)
	if !ok {
		return nil, fmt.Errorf("%w: step %d of the schedule is %s, which cannot go there; what can is %s", schedule.ErrDivergence, depth+1, token, schedule.List(p.Choices))
	}
	return &a, nil
}
