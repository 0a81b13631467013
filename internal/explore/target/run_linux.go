package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/rows"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/target/retry"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A run is one schedule of the conductor's subject, from the buyers' requests until the programs are
// idle. It knows which buyers have come and what they were answered.
type run struct {
	x        *Runner
	names    *naming.Names
	buyers   []*buyer
	whose    attribution
	rest     rest
	settling settling
	clearing clearing
	polling  *retry.Polling
	snapshot snapshots
	repeated retry.Loop
	record   *recorder
	rows     *rows.Tracker
	leftover *leftover
	pause    pause
	current  int               // the buyer that was released or answered last; 0: none in particular
	handed   int               // number of deliveries to buyers
	coming   []*buyer          // buyers without a request yet: a request is a step of a shared instance
	expired  int               // number of Redis keys that the clock had removed before
	several  []string          // commands that were several statements
	steps    map[template]bool // its commands, if the file ignores others
	divided  []string          // commands that read and write although another buyer's write could come between
	runsOut  []*op             // commands whose waits run out by a choice of this point
	struck   bool              // an event has happened
	answers  []exchange        // only in an observed run
	held     bool              // a command that only tries again is not among the last moves
	point    point             // the steps so far
	before   int               // number of deliveries at the last point
	overlap  bool              // a command ran while another one was held inside its server
}

// A buyer is one request.
type buyer struct {
	id        int
	alive     bool // not answered yet; guarded by gateTable.mu
	told      bool // reply and err are set; guarded by gateTable.mu
	begun     bool // one of its commands has come
	crashed   bool
	socket    *wire.Socket
	answered  chan struct{} // closed when told
	reply     reply
	err       error
	way       way            // for a shared instance
	sentSince map[string]int // its commands since its way changed
	since     int            // run.handed at the last delivery to this buyer
	noted     bool           // its answer is part of its way
}

// sent reports whether the command belongs to the buyer.
func (b *buyer) sent(o *op) bool { return o.buyer == b.id }

func (x *Runner) newRun(observe bool) *run {
	r := &run{x: x, snapshot: snapshots{}, steps: map[template]bool{}, names: naming.New(&x.varying, x.coarse), polling: retry.NewPolling(x.tries, x.routine)}
	r.rest = rest{r}
	r.settling = settling{r.rest}
	r.clearing = clearing{r.settling}
	r.whose = attribution{r: r, open: map[*wire.Conn]int{}}
	for i, b := range x.app.Buyers {
		r.buyers = append(r.buyers, &buyer{id: i + 1, way: wayOf(b), sentSince: map[string]int{}, answered: make(chan struct{})})
	}
	r.leftover = &leftover{run: r, used: map[*wire.Conn]use{}, at: -1}
	r.rows = rows.NewTracker(x.catalog, r.names, len(r.buyers), false)
	r.pause = pause{r: r, roles: map[*wire.Conn]string{}}
	r.record = &recorder{Recorder: conduct.NewRecorder[*op](observe), r: r}
	return r
}

// buyer returns a buyer by its number. Number 0 is a buyer that is never alive.
func (r *run) buyer(id int) *buyer {
	if id < 1 || id > len(r.buyers) {
		return &buyer{}
	}
	return r.buyers[id-1]
}

// markRunnable records that a message was delivered to the buyer, so it is no longer blocked.
func (r *run) markRunnable(id int) {
	r.handed++
	r.buyer(id).since = r.handed
}

// Begin implements conduct.Subject: it sends all requests, one after the other. If all buyers share one
// instance, a request is a step, since a later one may find a mutex free.
func (r *run) Begin(ctx context.Context) error {
	if r.x.shared {
		r.coming = slices.Clone(r.buyers)
	}
	for _, b := range r.buyers[:len(r.buyers)-len(r.coming)] {
		if err := r.send(ctx, b); err != nil {
			return err
		}
		if err := r.settling.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Describe implements conduct.Subject.
func (r *run) Describe(_ context.Context, p *schedule.Point, _ []move) {
	p.Where, p.Mixed, p.Held, p.Late = r.x.gateTable.where, choices{r}.mixed(), r.held, repeating{r.settling}.late()
	p.Races = r.x.catalog != nil
	p.Begun = func(id int) bool { return r.buyer(id).begun }
	if r.x.shared {
		p.Paused, p.Standing = r.pause.last(), r.pause.standing()
	}
	p.Fresh = func(string) (string, bool) { return "", false }
}

// Do implements conduct.Subject.
func (r *run) Do(ctx context.Context, m move) error {
	r.pause.begin(m.During)
	r.point = r.point.after(m.Token)
	r.whose.released()
	if m.Make != nil {
		r.record.happened(m)
		if m.Event != "" {
			r.current, r.struck = 0, true
			for server := range r.x.backends { // after any event, a polling buyer tries again
				r.polling.Changed(server)
			}
		}
		if err := m.Make(ctx); err != nil {
			return err
		}
	} else if m.Command.executed {
		r.record.commits(m.Command)
		r.current = m.Command.buyer
		r.x.gateTable.commit(m.Command)
	} else {
		r.record.sent(m.Command)
		if m.Command.Compound {
			r.several = append(r.several, naming.Short(r.names.Usual(m.Command.Text)))
		}
		r.current = m.Command.buyer
		if (splitting{r}).splits(m.Command) {
			r.x.gateTable.letGoSplit(m.Command)
		} else {
			r.x.gateTable.letGo(m.Command)
		}
	}
	err := r.settling.settle(ctx)
	if v, void := schedule.AsVoid(err); void && m.During != "" { // two buyers were inside the program at once
		v.Missed, v.Seen = true, v.Seen || r.pause.wanted == ""
		return v
	}
	if err != nil {
		return err
	}
	if err := r.pause.end(); err != nil {
		return err
	}
	if err := (splitting{r}).executed(ctx); err != nil {
		return err
	}
	if m.Event == "" && m.Command == nil && m.During == "" { // the move is a request
		if err := r.letIn(r.buyer(m.Buyer)); err != nil {
			return err
		}
	}
	return r.record.watch(ctx)
}

// letIn refuses a program that handles one request at a time. Its buyers run one after the other in
// every schedule, which proves nothing.
func (r *run) letIn(b *buyer) error {
	if len(r.deadEnd()) != 2 || !slices.Contains(r.deadEnd(), b.id) {
		return nil // the program handles several requests, or there is no other buyer
	}
	address, err := hostPort(r.x.app.Buyers[b.id-1].URL)
	if err != nil {
		return err
	}
	queued, err := r.x.instances.of(b.id).space.BacklogAt(address)
	if err == nil && queued > 0 {
		err = errors.New("a buyer is not let in while another is served: the program takes one request at a time, so there is nothing to explore in it; have it take several (threads, workers), or give `run:`, an instance for each buyer")
	}
	return err
}

// take receives an answer before it is delivered.
func (r *run) take(o *op) error {
	ctx := r.x.ctx
	protocol := o.Conn().Protocol
	back := r.x.backends[protocol]
	if err := back.answered(ctx, o); err != nil {
		return err
	}
	if o.Answer.Changed {
		if err := back.after(ctx); err != nil {
			return err
		}
		if protocol == "postgres" {
			if err := r.x.gateTable.notices.hear(ctx); err != nil {
				return err
			}
		}
	}
	if o.Push {
		r.polling.Changed(protocol) // a listener may try again
		r.x.pushed = true
		r.record.pushed(o)
		return nil
	}
	b := r.buyer(o.buyer)
	if o.committing && o.Answer.Failed { // the server has refused the commit
		o.known = false
	}
	shown := r.learn(o)
	r.polling.Tried(b.id, retry.Try{Name: o.name, Answer: shown, Server: protocol, Changed: o.Answer.Changed})
	r.snapshot.answered(o.Conn(), o.Text)
	r.repeated.Add(retry.Step{Buyer: o.buyer, Name: o.name, Answer: shown}, o.Answer.Changed)
	if r.x.shared {
		r.whose.transaction(o)
		r.pause.carried(o)
		b.way = b.way.after(r.names.Usual(o.name), r.names.Usual(shown))
		clear(b.sentSince)
	}
	if r.record.Observe {
		r.answers = append(r.answers, exchange{o.shown, protocol, r.names.Answer(o.Text, cmp.Or(o.Answer.Whole, o.Answer.Text))})
	}
	r.rows.Answered(o.forRows())
	r.record.answered(o)
	r.leftover.answered(o)
	return nil
}

// answer returns a command's answer for people, which is the same in every run. Values have their names
// before the text is shortened.
func (r *run) answer(o *op) string {
	return wire.Shorten(r.names.Answer(o.Text, cmp.Or(o.Answer.Whole, o.Answer.Text)))
}

// deadEnd returns the buyers without an answer. If nothing can move, the run is a dead end.
func (r *run) deadEnd() (who []int) {
	f := r.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range r.buyers {
		if b.alive && !b.crashed {
			who = append(who, b.id)
		}
	}
	return who
}

// answeredBy reports whether the shop has answered the buyer and the answer was delivered.
func (r *run) answeredBy(b *buyer) bool {
	r.x.gateTable.mu.Lock()
	defer r.x.gateTable.mu.Unlock()
	return b.told
}

// End implements conduct.Subject. Afterwards the programs are idle and the gates are shut.
func (r *run) End(ctx context.Context, e *schedule.Ended, err error) error {
	e.Compound, e.Divided, e.Concurrent = r.several, r.divided, r.overlap
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx), r.clearing.finish(ctx, true))
	}
	if v, void := schedule.AsVoid(err); void {
		err = r.x.ownTraffic.hint(judgement{r}.withRefusals(v))
	}
	whole := err == nil && !e.Pruned && !e.Cut // otherwise the run is incomplete
	e.Unforeseen = r.rows.Why()
	if whole {
		e.Verdict, e.Why, e.Findings, err = judgement{r}.verdict(ctx)
		e.Steps, e.Watch, e.Outcomes = r.record.Steps, r.record.columns, judgement{r}.outcomes()
		e.Folded = r.record.folded(ctx, e)
		if err == nil {
			e.Unforeseen, err = r.rows.Unforeseen(ctx, r.x.servers.SQL("postgres"), r.x.gateTable.passed())
		}
	}
	if _, void := schedule.AsVoid(err); !void {
		r.x.habits.learn(&r.whose)
	}
	if err == nil {
		for _, h := range r.x.guard.hidden(r.steps) {
			e.Ignored = append(e.Ignored, h.text)
		}
	}
	void, _ := schedule.AsVoid(err)
	stuck := err != nil && !errors.Is(err, schedule.ErrDivergence) && !void.Missed
	if err == nil && whole {
		stuck = len(r.deadEnd()) > 0
	}
	serves, cuts := r.x.recovery.after(err)
	stuck = stuck && !serves && !(cuts && r.clearing.cut(ctx))
	r.x.recovery.restarted = stuck && void.Diverged
	after := r.clearing.finish(ctx, stuck)
	if errors.Is(after, errStuck) && e.Why != "" {
		after = fmt.Errorf("%w, after an order that is %s: %s", after, e.Verdict, e.Why)
	}
	return errors.Join(err, after)
}
