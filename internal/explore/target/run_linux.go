package target

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/rows"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/instance"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/target/rest"
	"github.com/oversell/oversell/internal/explore/target/retry"
	"github.com/oversell/oversell/internal/explore/target/session"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A move is one possible next step of a run, such as the release of a command.
type move = conduct.Move[*gates.Op]

// A run executes one schedule as a conduct.Subject. After each move, it waits for the next standstill, when the program
// is idle.
type run struct {
	programs  session.Programs
	guard     *ignoreGuard
	learned   *learned
	buyers    *client.Buyers
	names     *naming.Names
	whose     *attribution
	rest      *rest.Rest
	settling  *rest.Settling
	clearing  *session.Clearing
	rows      *rows.Tracker
	record    *recorder
	namesakes *namesakes
	leftover  *leftover
	splitting *splitting
	choices   *choices
	repeating *repeating
	pause     *pause
	delivery  *delivery
	expired   int      // number of Redis keys that the clock had removed before the run
	several   []string // commands that consist of several statements
	waiting   *waiting // the first step at which a buyer was held back, since its retries are futile; nil: none
	struck    bool     // the explorer has injected an event, such as a crash
}

// newRun returns a run with all buyers. If `observe` is true, it records more, for a witness. If `alone` is true, only
// one buyer will send its request.
func (x *Runner) newRun(observe, alone bool) *run {
	p, l := x.programs, &x.learned
	r := &run{programs: p, guard: x.guard, learned: l, buyers: client.New(p.Gates, p.App.Buyers), names: naming.New(&l.varying, l.coarse)}
	r.rest = rest.New(p.Gates, p.Instances, r.buyers)
	polling := retry.NewPolling(x.patience(), x.tries, l.routine)
	polling.Alone = alone
	r.rows = rows.NewTracker(l.catalog, r.names, len(r.buyers.All), alone)
	r.whose = newAttribution(p.Gates.Table.Now, r.buyers, r.names, &l.habits)
	r.leftover = &leftover{holdings: p.Holdings, pulse: p.Gates.Pulse, buyers: r.buyers, used: map[*wire.Conn]use{}, at: -1}
	r.record = &recorder{Recorder: conduct.NewRecorder[*gates.Op](observe), names: r.names, servers: p.Servers, leftover: r.leftover, watched: x.watched}
	r.leftover.record = r.record
	r.namesakes = &namesakes{instances: p.Instances, first: map[string]int{}}
	r.splitting = &splitting{on: x.spec.Overlap, table: p.Gates.Table, code: p.Code}
	r.choices = &choices{
		app: p.App, instances: p.Instances, filled: p.Request, code: p.Code, table: p.Gates.Table, buyers: r.buyers, names: r.names, whose: r.whose, polling: polling,
		snapshot: snapshots{}, splitting: r.splitting, letters: x.letters(), anyOrder: x.anyOrder(), rows: r.rows, waits: rest.Waits{Gates: p.Gates, Backends: p.Backends},
	}
	r.pause = &pause{shared: p.Instances.Shared(), table: p.Gates.Table, buyers: r.buyers, names: r.names, whose: r.whose, choices: r.choices, record: r.record, roles: map[*wire.Conn]string{}}
	r.delivery = &delivery{
		programs: p, guard: x.guard, learned: l, buyers: r.buyers, names: r.names, whose: r.whose, polling: polling,
		snapshot: r.choices.snapshot, rows: r.rows, record: r.record, leftover: r.leftover, strays: &strays{taken: map[stray]*wire.Conn{}, pooler: r.pooler}, pause: r.pause, steps: map[gates.Template]bool{},
	}
	r.settling = rest.NewSettling(r.rest, p.Backends, r.delivery)
	r.repeating = &repeating{gates: p.Gates, instances: p.Instances, buyers: r.buyers, settling: r.settling, memory: &l.memory, alone: alone}
	r.clearing = session.NewClearing(x.recovery, r.buyers, r.rest, r.leftover.dirty)
	return r
}

// pooler returns the pooler, such as pgbouncer, that gives connection c to a client only for a transaction. If there is
// none, or if buyers have their own instances, it returns "".
func (r *run) pooler(c *wire.Conn) string {
	if !r.programs.Instances.Shared() || c.Protocol != "postgres" {
		return ""
	}
	return poolerOf(r.programs.Instances.All[0], c)
}

// Begin implements conduct.Subject: it sends all requests, one after the other. In a shared instance, sending a request
// is a step that the search chooses, since a later buyer may find a mutex free.
func (r *run) Begin(ctx context.Context) error {
	if r.programs.Instances.Shared() {
		r.choices.coming = slices.Clone(r.buyers.All)
		return nil
	}
	for _, b := range r.buyers.All {
		if err := r.send(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// send sends a buyer's request, and returns at the next standstill, when the program is idle.
func (r *run) send(ctx context.Context, b *client.Buyer) error {
	if err := r.buyers.Send(ctx, b, r.programs.Request(b.ID), r.programs.Instances.Of(b.ID)); err != nil {
		return err
	}
	return r.settling.Settle(ctx)
}

// Moves implements conduct.Subject.
func (r *run) Moves(ctx context.Context) ([]move, error) {
	if err := r.settling.Wakes(ctx); err != nil {
		return nil, err
	}
	if err := r.repeating.repeat(ctx); err != nil {
		return nil, err
	}
	all, err := r.choices.ready()
	r.choices.divides(all)
	return all, err
}

// Over implements conduct.Subject. The run is not over while a buyer waits, because an event may still unblock it.
func (r *run) Over() bool { return len(r.buyers.Waiting()) == 0 }

// Describe implements conduct.Subject.
func (r *run) Describe(_ context.Context, p *schedule.Point, _ []move) {
	now := r.programs.Gates.Table.Now()
	p.Where = func() string { return r.programs.Gates.Table.Now().Where() }
	p.Mixed, p.Held, p.Late = r.learned.pushed || r.choices.mixed(now) || r.choices.held && r.choices.anyOrder, r.choices.held, slices.ContainsFunc(now.Held, isLate)
	if p.Held && r.waiting == nil {
		r.waiting = &waiting{buyer: r.choices.waiter, depth: p.Depth}
	}
	p.Races = r.learned.catalog != nil || r.choices.anyOrder
	p.Begun = func(id int) bool { return r.buyers.Of(id).Begun }
	if r.programs.Instances.Shared() {
		p.Paused, p.Standing = r.pause.last(), r.pause.standing()
	}
	p.Fresh = func(string) (string, bool) { return "", false }
}

// Do implements conduct.Subject.
func (r *run) Do(ctx context.Context, m move) error {
	r.pause.begin(m.During)
	r.repeating.leaves(m.Token)
	r.whose.released()
	if err := r.start(ctx, m); err != nil {
		return err
	}
	err := r.settling.Settle(ctx)
	if v, void := schedule.AsVoid(err); void && m.During != "" { // perhaps the pause ended while the other buyer moved
		v.Missed, v.Seen = true, v.Seen || r.pause.wanted == ""
		return v
	}
	if err != nil {
		return err
	}
	if err := r.pause.end(); err != nil {
		return err
	}
	if err := r.delivery.executed(ctx); err != nil {
		return err
	}
	if m.Event == "" && m.Command == nil && m.During == "" { // the move is a request
		if err := r.letIn(r.buyers.Of(m.Buyer)); err != nil {
			return err
		}
	}
	return r.record.watch(ctx)
}

// start makes a move and does not wait for its effects.
func (r *run) start(ctx context.Context, m move) error {
	table := r.programs.Gates.Table
	switch {
	case m.Make != nil:
		r.record.happened(m)
		if m.Event != "" {
			r.buyers.Current, r.struck = 0, true
			r.delivery.changedAll() // after any event, a polling buyer tries again
		}
		return m.Make(ctx)
	case m.Command.Executed:
		r.record.commits(m.Command)
		r.buyers.Current = m.Command.Buyer
		table.Commit(m.Command)
	default:
		r.record.sent(m.Command)
		r.namesakes.sent(m.Command)
		if m.Command.Compound {
			r.several = append(r.several, naming.Short(r.names.Usual(m.Command.Text)))
		}
		r.buyers.Current = m.Command.Buyer
		if r.splitting.splits(m.Command) {
			table.LetGoSplit(m.Command)
		} else {
			table.LetGo(m.Command)
		}
	}
	return nil
}

// letIn refuses a program that handles one request at a time. In every schedule of it, the buyers would run one after
// the other, which proves nothing.
func (r *run) letIn(b *client.Buyer) error {
	if waiting := r.buyers.Waiting(); len(waiting) != 2 || !slices.Contains(waiting, b.ID) {
		return nil // the program handles several requests, or no other buyer waits
	}
	address, err := client.HostPort(b.Request.URL)
	if err != nil {
		return err
	}
	queued, err := r.programs.Instances.Of(b.ID).Network.BacklogAt(address)
	if err == nil && queued > 0 {
		err = errors.New("a buyer is not let in while another is served: the program takes one request at a time, so there is nothing to explore in it; have it take several (threads, workers), or give `run:`, an instance for each buyer")
	}
	return err
}

// End implements conduct.Subject. When it returns, the programs are idle and the gates are shut.
func (r *run) End(ctx context.Context, e *schedule.Ended, err error) error {
	e.Compound, e.Divided, e.Holdable, e.Concurrent = r.several, r.choices.divided, r.choices.holdable, r.splitting.overlapped
	e.Namesakes, e.Stray = r.namesakes.same, r.delivery.strays.first
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx), r.clearing.Finish(ctx, true))
	}
	judge := judgement{app: r.programs.App, servers: r.programs.Servers, buyers: r.buyers, names: r.names, leftover: r.leftover, serial: r.learned.serial, struck: r.struck}
	if v, void := schedule.AsVoid(err); void {
		err = r.programs.Gates.OwnTraffic.Hint(judge.withRefusals(v))
	}
	if r.learned.serial != nil {
		e.Uncompared = r.learned.serial.LeftOut()
	}
	if before := r.learned.waiting; err == nil && r.waiting != nil && (before == nil || r.waiting.depth < before.depth) {
		r.waiting.tokens = slices.Clone(e.Tokens[:r.waiting.depth])
		r.learned.waiting = r.waiting
	}
	whole := err == nil && !e.Pruned && !e.Cut // without an error, the run is complete unless it ended early
	e.Unforeseen = r.rows.Why()
	if whole {
		err = r.noneExpired(ctx)
		if err == nil {
			e.Verdict, e.Why, e.Findings, err = judge.verdict(ctx)
			e.Early = judge.early
		}
		e.Steps, e.Watch, e.Outcomes = r.record.Steps, r.record.columns, judge.outcomes()
		e.Folded = r.record.folded(ctx, e, r.programs.Instances.Shared())
		if err == nil {
			e.Unforeseen, err = r.rows.Unforeseen(ctx, r.programs.Servers.SQL("postgres"), r.programs.Gates.Bypass.Ungated())
		}
	}
	if _, void := schedule.AsVoid(err); !void {
		r.learned.habits.learn(r.whose)
	}
	if err == nil {
		for _, h := range r.guard.hidden(r.delivery.steps, r.programs.Gates.Bypass.Ignored()) {
			e.Ignored = append(e.Ignored, h.text)
		}
	}
	void, _ := schedule.AsVoid(err)
	stuck := err != nil && !errors.Is(err, schedule.ErrDivergence) && !void.Missed
	if err == nil && whole {
		stuck = len(r.buyers.Waiting()) > 0
	}
	after := r.clearing.End(ctx, err, stuck)
	if void.Diverged {
		void.Why += r.programs.Servers.Unmet()
		err = void
	}
	if errors.Is(after, instance.ErrStuck) && e.Why != "" {
		after = fmt.Errorf("%w, after an order that is %s: %s", after, e.Verdict, e.Why)
	}
	return errors.Join(err, after)
}

// noneExpired returns an error if the clock has removed a Redis key during this run.
func (r *run) noneExpired(ctx context.Context) error {
	now, err := r.programs.Expired(ctx)
	if err == nil && now != r.expired {
		err = naming.Void("a key in Redis ran out by the clock", "%d of them; a lease is to end by an event", now-r.expired)
	}
	return err
}
