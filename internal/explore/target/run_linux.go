package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// maxSteps ends a schedule that goes round in circles.
const maxSteps = 200

// A run is one schedule, from the buyers' requests until all is at rest.
type run struct {
	x       *Runner
	names   *names
	buyers  []*buyer
	current int // the buyer who was let go or answered last; 0: nobody in particular
	open    map[*wire.Conn]int
	struck  map[schedule.Event]bool
	changes map[string]int // at each server, by anybody
	moves   int            // see stirred
	lessons []lesson       // of this run, see habits
	coming  []*buyer       // have not sent their requests: a step of an instance that all share
	expired int            // keys of Redis that the clock had removed before
	record  *recorder
	several []string // commands that were several statements
	held    bool     // a command that only tries again is not among the last actions
}

// A buyer is one request.
type buyer struct {
	id       int
	alive    bool // floor.mu: not answered yet
	told     bool // floor.mu: reply and err are there
	begun    bool // a command of it has come
	crashed  bool
	socket   *wire.Socket
	answered chan struct{} // closed when told
	reply    reply
	err      error
	way      way            // where all share one instance
	since    int            // run.moves, when something was handed to it last
	noted    bool           // it was told, and its way has that
	tries    []try          // since another has changed something, the last ones
	own      map[string]int // of run.changes, those by this buyer
}

func (x *Runner) newRun(observe bool) *run {
	r := &run{x: x, names: newNames(x.coarse), open: map[*wire.Conn]int{}, struck: map[schedule.Event]bool{}, changes: map[string]int{}}
	for i := range x.app.Buyers {
		r.buyers = append(r.buyers, &buyer{id: i + 1, way: wayOf(x.app.Buyers[i]), answered: make(chan struct{}), own: map[string]int{}})
	}
	r.record = &recorder{r: r, observe: observe}
	return r
}

// buyer is one by its number. 0, nobody, is a buyer that is never alive.
func (r *run) buyer(id int) *buyer {
	if id < 1 || id > len(r.buyers) {
		return &buyer{own: map[string]int{}}
	}
	return r.buyers[id-1]
}

// stirred: something was handed to the buyer, so it does not wait any more.
func (r *run) stirred(id int) {
	r.moves++
	r.buyer(id).since = r.moves
}

// play sends all requests, one after the other, and makes the steps. Where all buyers share
// one instance, a request is a step: who comes later may find a mutex free.
func (r *run) play(ctx context.Context, choose schedule.Chooser) (e schedule.Ended, err error) {
	if r.x.shared {
		r.coming = slices.Clone(r.buyers)
	}
	for _, b := range r.buyers[:len(r.buyers)-len(r.coming)] {
		if err := r.send(ctx, b); err != nil {
			return e, err
		}
		if err := r.settle(ctx); err != nil {
			return e, err
		}
	}
	for depth := 0; ; depth++ {
		if err := r.wakes(ctx); err != nil {
			return e, err
		}
		actions, err := r.actions(ctx)
		if err != nil {
			return e, err
		}
		if len(actions) > 0 && depth == maxSteps {
			e.Cut = true
			return e, nil
		}
		token, err := choose(r.point(depth, actions))
		if err != nil {
			return e, err
		}
		if token == "" {
			e.Pruned = true
			return e, nil
		}
		if len(actions) == 0 {
			return e, nil
		}
		at := slices.IndexFunc(actions, func(a action) bool { return a.Token == token })
		if at < 0 {
			return e, fmt.Errorf("%w: step %d of the schedule is %s, which cannot go there; what can is %s", schedule.ErrDivergence, depth+1, token, schedule.List(choices(actions)))
		}
		e.Tokens = append(e.Tokens, token)
		if err := r.step(ctx, actions[at]); err != nil {
			return e, err
		}
	}
}

func (r *run) point(depth int, actions []action) *schedule.Point {
	return &schedule.Point{
		Depth: depth, Choices: choices(actions), Where: r.x.floor.where, Mixed: r.mixed(), Held: r.held,
		Begun: func(id int) bool { return r.buyer(id).begun },
		Fresh: func(string) (string, bool) { return "", false },
	}
}

// step makes one step, and waits until all is at rest again.
func (r *run) step(ctx context.Context, a action) error {
	switch {
	case a.comes:
		b := r.buyer(a.Buyer)
		r.coming = slices.DeleteFunc(slices.Clone(r.coming), func(other *buyer) bool { return other == b })
		r.record.happened(a)
		if err := r.send(ctx, b); err != nil {
			return err
		}
	case a.event != nil:
		r.struck[a.Event] = true
		r.current = 0
		for server := range r.x.backends { // whatever it was, who tries in vain tries again
			r.changes[server]++
		}
		r.record.happened(a)
		if err := a.event.strike(ctx, r, a); err != nil {
			return err
		}
	case a.over:
		r.record.happened(a)
		if err := r.endWait(ctx, a.op); err != nil {
			return err
		}
	default:
		r.record.sent(a.op)
		if a.op.Compound {
			r.several = append(r.several, short(r.usual(a.op.Text)))
		}
		r.current = a.op.buyer
		r.x.floor.letGo(a.op)
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if a.comes {
		if err := r.letIn(r.buyer(a.Buyer)); err != nil {
			return err
		}
	}
	return r.record.watch(ctx)
}

// letIn: a program that takes one request at a time has no other order than one buyer after
// the other, whatever it does. That is no proof, so it is refused.
func (r *run) letIn(b *buyer) error {
	if len(r.deadEnd()) != 2 || !slices.Contains(r.deadEnd(), b.id) {
		return nil // more than one is served already, or nobody else
	}
	address, err := hostPort(r.x.app.Buyers[b.id-1].URL)
	if err != nil {
		return err
	}
	queued, err := r.x.programOf(b.id).space.BacklogAt(address)
	if err == nil && queued > 0 {
		err = errors.New("a buyer is not let in while another is served: the program takes one request at a time, so there is nothing to explore in it; have it take several (threads, workers), or give `run:`, an instance for each buyer")
	}
	return err
}

// take is told of an answer before it is handed over.
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
	}
	for _, value := range o.Answer.Made {
		r.names.made(value)
		r.x.short = r.x.short || len(value) < longID
	}
	if o.Push {
		r.changes[protocol]++ // who listens may try again
		r.x.pushed = true
		r.record.pushed(o)
		return nil
	}
	r.tried(o, protocol)
	if r.x.shared {
		r.transaction(o)
		b := r.buyer(o.buyer)
		b.way = b.way.after(r.usual(o.name), r.usual(o.Answer.Text))
	}
	r.record.answered(o)
	return nil
}

// transaction notes whose a connection is that all buyers' program shares: as long as its
// transaction is open.
func (r *run) transaction(o *op) {
	switch {
	case o.Ends:
		delete(r.open, o.Conn())
	case o.Effect == schedule.Local:
		r.open[o.Conn()] = o.buyer
	}
}

// wakes returns at once where a command can be let go. Where none can, and a buyer is inside
// a program, it waits until no timer is left that could wake it: a dead end is told from a nap,
// however long that is.
func (r *run) wakes(ctx context.Context) error {
	f := r.x.floor
	for begun := time.Now(); ; {
		f.mu.Lock()
		asleep := len(f.held) == 0 && len(r.inside()) > 0
		f.mu.Unlock()
		if !asleep {
			return nil
		}
		for since, seq := time.Now(), f.seq.Load(); f.seq.Load() == seq; time.Sleep(time.Millisecond) {
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

// A dead end is a run in which somebody is left and nothing can move.
func (r *run) deadEnd() (who []int) {
	f := r.x.floor
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range r.buyers {
		if b.alive && !b.crashed {
			who = append(who, b.id)
		}
	}
	return who
}

// judge says how the run has ended, by the user's own queries.
func (r *run) judge(ctx context.Context) (verdict.Verdict, string, []witness.Finding, error) {
	sold, untold := 0, 0
	for _, b := range r.buyers {
		switch told := r.answeredBy(b) && b.err == nil; {
		case told && slices.Contains(r.x.app.Sold, b.reply.status):
			sold++
		case !told && b.crashed:
			untold++
		}
	}
	expired, err := r.x.expired(ctx)
	switch {
	case err != nil:
		return "", "", nil, err
	case expired != r.expired:
		return "", "", nil, voided("a key in Redis ran out by the clock", "%d of them; a lease is to end by an event", expired-r.expired)
	}
	who := r.deadEnd()
	found, err := r.x.servers.Never(ctx, sold)
	if app.Locked(err) && len(who) > 0 {
		return verdict.Stalled, whoWaits(who) + " for what nobody will do, and a lock keeps `never` from reading", nil, nil
	}
	if err != nil {
		return "", "", nil, err
	}
	// Who has crashed and was told nothing may have an order or none: no shop could do better.
	for more := 1; more <= untold && len(found) > 0; more++ {
		other, err := r.x.servers.Never(ctx, sold+more)
		if err != nil {
			return "", "", nil, err
		}
		if len(other) == 0 {
			found = nil
		}
	}
	if len(found) > 0 {
		findings := findingsOf(found)
		return verdict.Broken, witness.Why(findings), findings, nil
	}
	if len(who) > 0 {
		return verdict.Stalled, whoWaits(who) + " for what nobody will do", nil, nil
	}
	return verdict.Holds, "", nil, nil
}

// answeredBy: the shop has answered the buyer, and the answer was handed over.
func (r *run) answeredBy(b *buyer) bool {
	r.x.floor.mu.Lock()
	defer r.x.floor.mu.Unlock()
	return b.told
}

// whoWaits is "buyer 1 waits", "buyers 1, 2 and 3 wait".
func whoWaits(ids []int) string {
	if len(ids) == 1 {
		return buyerNames(ids) + " waits"
	}
	return buyerNames(ids) + " wait"
}

// outcomes are what the buyers were told.
func (r *run) outcomes() (all []witness.Outcome) {
	for _, b := range r.buyers {
		o := witness.Outcome{Buyer: b.id, Answer: "no answer"}
		switch {
		case b.crashed && (!r.answeredBy(b) || b.err != nil):
			o.Answer = "crashed"
		case !r.answeredBy(b):
		case b.err != nil:
			o.Error = b.err.Error()
		default:
			o.Answer = r.names.shown(b.reply.text())
		}
		all = append(all, o)
	}
	return all
}

// finish brings the programs to where the next run can begin: with the gates open they do
// what is left to do. One that is stuck, or was killed, is started anew.
func (r *run) finish(ctx context.Context, stuck bool) error {
	x := r.x
	if !stuck || x.app.Attach != nil { // that one had better not be stuck
		r.current = 0
		stuck = r.drain(ctx) != nil
	}
	if stuck {
		for _, b := range r.buyers {
			if b.socket != nil {
				_ = b.socket.Close()
			}
		}
	}
	var down []*instance
	for _, i := range x.programs {
		if !i.up() || stuck {
			if err := x.end(ctx, i); err != nil {
				return err
			}
			down = append(down, i)
		}
	}
	for _, i := range down { // when none has anything open any more
		if err := x.again(ctx, i); err != nil {
			return err
		}
	}
	x.floor.close()
	return nil
}

// drain opens the gates, waits for the buyers' answers and until the programs are at rest,
// and shuts the gates.
func (r *run) drain(ctx context.Context) error {
	f := r.x.floor
	for _, o := range f.open() {
		if err := r.x.backends[o.Conn().Protocol].interrupt(ctx, o.Conn().ID); err != nil {
			return err
		}
	}
	if r.x.shared {
		if err := r.served(ctx); err != nil {
			return err
		}
	}
	for _, b := range r.buyers {
		if b.socket == nil || b.crashed {
			continue
		}
		select {
		case <-b.answered:
		case <-time.After(r.x.patience):
			return errors.New("a buyer is not answered")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for deadline := time.Now().Add(r.x.patience); !r.restful(); time.Sleep(look) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return errors.New("the program does not come to rest")
		}
	}
	f.close()
	return nil
}

// restful: nothing is busy and the programs sleep.
func (r *run) restful() bool {
	r.x.floor.wake()
	return r.x.floor.busy.Load() == 0 && r.quiet()
}
