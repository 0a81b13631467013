package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// ErrHarness: the exploration itself went wrong, and its result means nothing.
var ErrHarness = errors.New("the explorer lost control of the run")

// eventRoom is what buyers may tell while the scheduler asks a server something.
// Who finds it full waits, so it decides nothing.
const eventRoom = 64

// patience bounds the wait for what must come. It decides no step: when it is
// over the run is a harness error.
const patience = 30 * time.Second

type eventKind int

const (
	arrived  eventKind = iota // an op stands at the gate
	finished                  // it was run
	refused                   // it would block, and is to stand there again
	paused                    // a round of tries has ended
	returned                  // Buy has
)

type event struct {
	kind  eventKind
	buyer int
	op    *op
}

// A run is one schedule, from the first command to the last.
type run struct {
	x      *Explorer
	events chan event
	buyers []*buyer // buyer 1 is buyers[0]

	free atomic.Bool // the schedule is over: let everything pass

	mu      sync.Mutex
	crashed map[int]bool
	timers  []*timer
	locks   []lockEvent // since the step before

	concurrent bool  // a buyer may have several commands on the way now
	phase      phase // of the time that passes, see passTime
	renewed    bool  // the leases have aged, and who lives has renewed

	struck   map[string]int // events so far, by kind
	owners   map[string]int // by server and key, see own
	foreign  bool           // a buyer has freed another's lock
	outcome  sync.WaitGroup // of the buyers' goroutines
	woken    bool           // those who wait for a message have looked again by themselves
	told     int            // messages, when the buyers inside were seen to wait
	unblocks bool           // since then a command was sent that may end a wait in the database
	owed     bool           // a named lock was freed, and somebody who waits will get it
	cut      bool           // not all of its goroutines ended as they would have
	sent     chan struct{}  // an op of proceedAloud is on its way
	seen     string         // what the last step came to, where a server decided it, see overlap.go
}

// A buyer is one Buy.
type buyer struct {
	id       int
	strategy purchase.Strategy
	cancel   context.CancelCauseFunc

	gate    []*op // stand there
	flying  []*op // let go, and not answered
	blocked bool  // flying waits for another buyer in the database
	asked   int   // Redlock nodes, so far
	alone   bool  // no more of them are asked along with those at the gate
	inside  bool  // waits for another buyer in the process, or for a message

	over    bool // Buy has returned
	crashed bool
	receipt purchase.Receipt
	err     error

	// Of polling: a round of tries that found nothing is not made again until
	// somebody else has changed what it looked at.
	changes map[string]int // by server: changes by others, so far
	begun   map[string]int // the same when this round began
	touched map[string]bool
	resting bool
	named   bool // holds a lock of GET_LOCK
	locks   bool // may hold others of the database
	steps   int  // so far
	ends    int  // transactions of others that have ended
}

func (x *Explorer) start(ctx context.Context) *run {
	r := &run{
		x: x, events: make(chan event, eventRoom), sent: make(chan struct{}, 1),
		crashed: map[int]bool{}, struck: map[string]int{}, owners: map[string]int{}, concurrent: x.concurrent,
	}
	x.gates.pubsub.begin()
	x.gates.current.Store(r)
	strategies := x.build()
	for i := range x.config.Buyers {
		ctx, cancel := context.WithCancelCause(withBuyer(ctx, i+1))
		b := &buyer{
			id: i + 1, strategy: strategies[i], cancel: cancel,
			changes: map[string]int{}, begun: map[string]int{}, touched: map[string]bool{},
		}
		r.buyers = append(r.buyers, b)
		r.outcome.Add(1)
		go r.buy(ctx, b) // and not outcome.Go: see quiet.go
	}
	return r
}

// buy runs in the buyer's goroutine. Its name marks the goroutine, see quiet.go.
func (r *run) buy(ctx context.Context, b *buyer) {
	defer r.outcome.Done()
	defer b.cancel(nil)
	if r.x.config.Shared {
		// Who comes first to a lock in memory is a choice too.
		o := &op{buyer: b.id, server: "process", name: "calls Buy", text: "calls Buy"}
		b.err = r.x.gates.pass(o, func() error { o.changed = true; return ctx.Err() })
	}
	if b.err != nil {
		r.events <- event{returned, b.id, nil}
		return
	}
	b.receipt, b.err = b.strategy.Buy(ctx, purchase.Order{Product: r.x.config.Product, Purchaser: buyerName(b.id), Amount: 1})
	r.events <- event{returned, b.id, nil}
}

func buyerName(id int) string { return fmt.Sprintf("buyer-%d", id) }

func (r *run) buyer(id int) (*buyer, error) {
	if id < 1 || id > len(r.buyers) {
		return nil, fmt.Errorf("%w: a command of no buyer: its context does not come from Buy; give each buyer an instance of its own", ErrHarness)
	}
	return r.buyers[id-1], nil
}

func (r *run) dead(id int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.crashed[id]
}

// pause is lockstrategy.Deps.Pause.
func (r *run) pause(id int) {
	if !r.free.Load() && !r.dead(id) {
		r.events <- event{paused, id, nil}
	}
}

// A lockEvent is a lock that a buyer has taken or freed.
type lockEvent struct {
	buyer int
	kind  lockstrategy.EventKind
}

// observe is lockstrategy.Deps.Observe.
func (r *run) observe(id int, kind lockstrategy.EventKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, shown := lockWords[kind]; shown && !r.crashed[id] {
		r.locks = append(r.locks, lockEvent{id, kind})
	}
}

// lockEvents are those since it was called last, the buyers in order: which of
// them was first is not the schedule's.
func (r *run) lockEvents() []lockEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.locks
	r.locks = nil
	slices.SortStableFunc(events, func(a, b lockEvent) int { return a.buyer - b.buyer })
	return events
}

// apply notes one event.
func (r *run) apply(e event) error {
	b, err := r.buyer(e.buyer)
	if err != nil {
		return err
	}
	switch e.kind {
	case arrived:
		b.gate = append(b.gate, e.op)
		b.inside = false
		if strings.HasPrefix(e.op.server, "redlock-") && !e.op.aside {
			b.asked++
		}
	case refused:
		e.op.blocked = true
		b.flying = without(b.flying, e.op)
		b.gate = append(b.gate, e.op)
	case finished:
		if e.op.server != "sql" && r.x.gates.pubsub.count() != r.told { // who waits for the message is on its way
			for _, other := range r.buyers {
				other.inside = false
			}
		}
		b.flying = without(b.flying, e.op)
		if !e.op.aside && (e.op.changed || e.op.ends) { // so it was worth while
			r.phase = renewals
		}
		r.namedLock(b, e.op)
		r.own(e.op)
		if e.op.server == "sql" && (e.op.effect == writes || e.op.ends) {
			b.locks = !e.op.ends
		}
		for _, other := range r.buyers {
			if other == b {
				continue
			}
			if e.op.changed || e.op.ends {
				other.changes[e.op.server]++
			}
			if e.op.ends {
				other.ends++
			}
		}
	case paused:
		b.resting = true
	case returned:
		b.over = true
	}
	return nil
}

// mayWait is a guess, by which a look comes at once: each command on its way is
// one that may take a lock, and another buyer has some.
func (r *run) mayWait() bool {
	flying := 0
	for _, b := range r.buyers {
		held := slices.ContainsFunc(r.buyers, func(other *buyer) bool { return other != b && (other.locks || other.named) })
		for _, o := range b.flying {
			flying++
			if !held || o.server != "sql" || o.effect != writes || o.controls() {
				return false
			}
		}
	}
	return flying > 0 && r.x.database.blocks()
}

// namedLock keeps account of GET_LOCK: the process list still shows who waits
// for a while after the lock was granted.
func (r *run) namedLock(b *buyer, o *op) {
	switch {
	case o.namedLock():
		b.named = o.err == nil && strings.HasSuffix(o.result, "=1")
		r.owed = r.owed && !b.named
	case strings.Contains(o.name, "RELEASE_LOCK("):
		r.freed(b)
	}
}

func (r *run) freed(b *buyer) {
	if !b.named {
		return
	}
	b.named = false
	for _, other := range r.buyers {
		for _, o := range other.flying {
			r.owed = r.owed || other != b && o.namedLock()
		}
	}
}

func without(ops []*op, o *op) []*op {
	return slices.DeleteFunc(slices.Clone(ops), func(other *op) bool { return other == o })
}

// looksAtOnce is how often settle looks without a pause at what is likely to
// wait: a look takes the server about as long as it takes a statement to get
// there.
const looksAtOnce = 3

// settle returns when every buyer stands at its gate, waits, or is done.
func (r *run) settle(ctx context.Context) error {
	told := r.x.gates.pubsub.count()
	for _, b := range r.buyers { // what may have ended is to be seen again
		b.blocked = b.blocked && !r.unblocks
		b.alone = false
		b.inside = b.inside && r.told == told && !r.concurrent
	}
	r.unblocks, r.told = false, told
	deadline := time.Now().Add(patience)
	timer := r.x.timer
	for tries := 0; ; tries++ {
		if err := r.drain(); err != nil {
			return err
		}
		if r.standing() {
			return nil
		}
		likely := r.mayWait()
		if likely {
			runtime.Gosched() // so that it is sent
		}
		if likely || tries > 0 { // nothing came at once: somebody may be waiting
			if err := r.look(ctx); err != nil {
				return err
			}
			if r.standing() {
				return nil
			}
			if likely && tries+1 < looksAtOnce {
				continue
			}
		}
		// The time is how long to sleep until the next look, no more. The runtime makes
		// a millisecond of it when it has nothing else to do.
		timer.Reset(min(time.Duration(tries+1)*200*time.Microsecond, 2*time.Millisecond))
		select {
		case e := <-r.events:
			timer.Stop()
			if err := r.apply(e); err != nil {
				return err
			}
			tries = -1
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %s", ErrHarness, r.whoMoves())
		}
	}
}

func (r *run) drain() error {
	for {
		select {
		case e := <-r.events:
			if err := r.apply(e); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// standing: nobody moves. Where a buyer may have several commands on the way the
// goroutines say so; what they did until then may show at the gates.
func (r *run) standing() bool {
	switch {
	case !r.settled():
		return false
	case !r.concurrent:
		return true
	case !r.still() || !r.settled():
		return false
	}
	r.concurrent = r.x.concurrent || r.beside()
	return true
}

// beside: a buyer still has more than one thing under way: a renewal, or the end
// of a transaction whose context has ended.
func (r *run) beside() bool {
	for _, b := range r.buyers {
		for _, o := range append(b.gate[:len(b.gate):len(b.gate)], b.flying...) {
			if o.aside || o.givenUp() {
				return true
			}
		}
	}
	return false
}

// settled: as far as the gates know.
func (r *run) settled() bool {
	for _, b := range r.buyers {
		switch {
		case len(b.flying) > 0 && !b.blocked, slices.ContainsFunc(b.flying, (*op).givenUp):
			return false
		case !b.over && len(b.gate) > 0 && r.x.nodes > 0 && b.asked%r.x.nodes != 0 && !b.alone:
			return false // the other nodes will be asked along with this one
		case !b.over && len(b.gate) == 0 && len(b.flying) == 0 && !b.inside:
			return false
		}
	}
	return true
}

// still: no goroutine of a strategy can go on by itself, and nothing is on its
// way to one. Asked before and after the look at the goroutines: a message that is
// through by the second time may have woken one that stood still in between.
func (r *run) still() bool {
	awaitIdle(r.x.idle)
	before, moment := r.x.gates.pubsub.quiet()
	if !before || !standstill(&r.x.stacks) {
		return false
	}
	after, later := r.x.gates.pubsub.quiet()
	return after && later == moment && len(r.events) == 0
}

// look finds out of buyers that were not heard of whether they wait.
func (r *run) look(ctx context.Context) error {
	silent := false
	var flying []*op
	for _, b := range r.buyers {
		flying = append(flying, b.flying...)
		silent = silent || !b.over && len(b.flying) == 0 && (len(b.gate) == 0 || r.x.nodes > 0)
	}
	if len(flying) > 0 {
		waiting, err := r.x.database.waiting(ctx, flying)
		if err != nil {
			return err
		}
		r.block(waiting)
	}
	if silent && r.still() {
		for _, b := range r.buyers {
			b.inside = !b.over && len(b.gate) == 0 && len(b.flying) == 0
			b.alone = len(b.gate) > 0
		}
	}
	return nil
}

// block notes who waits in the database: all whose commands are on the way, or
// nobody, since one that still runs may be about to let another through.
func (r *run) block(waiting map[int64]bool) {
	if r.owed || len(r.events) > 0 {
		return
	}
	for _, b := range r.buyers {
		for _, o := range b.flying {
			if o.conn == nil || !waiting[o.conn.id] || o.timedOut.Load() {
				return
			}
		}
	}
	for _, b := range r.buyers {
		b.blocked = len(b.flying) > 0
	}
}

// state says of each buyer where it is, for an error.
func (r *run) state() string {
	var all []string
	for _, b := range r.buyers {
		where := fmt.Sprintf("buyer %d: %d at the gate, %d on the way", b.id, len(b.gate), len(b.flying))
		if b.inside {
			where += ", waits"
		}
		if b.over {
			where += fmt.Sprintf(", done (%v)", b.err)
		}
		all = append(all, where)
	}
	return strings.Join(all, "; ")
}

func (r *run) whoMoves() string {
	text := "nobody knows what these do: "
	for _, b := range r.buyers {
		if len(b.flying) > 0 && !b.blocked {
			text += fmt.Sprintf("buyer %d: %s; ", b.id, b.flying[0].text)
		} else if !b.over && len(b.gate) == 0 && !b.blocked && !b.inside {
			text += fmt.Sprintf("buyer %d, between two commands; ", b.id)
		}
	}
	return text
}

// release lets one op go.
func (r *run) release(o *op, how order) error {
	b, err := r.buyer(o.buyer)
	if err != nil {
		return err
	}
	if !o.aside {
		if b.resting || len(b.touched) == 0 {
			b.resting = false
			b.begun, b.touched = maps.Clone(b.changes), map[string]bool{}
		}
		b.touched[o.server] = true
	}
	for _, s := range r.x.servers {
		s.counted = s.counted && s.name != o.server
	}
	r.unblocks = r.unblocks || o.server == "sql" && o.effect == writes
	b.steps++
	b.gate = without(b.gate, o)
	b.flying = append(b.flying, o)
	o.blocked, o.seenEnds = false, b.ends
	o.order <- how
	return nil
}

// runnable reports whether an op at the gate may be let go.
func (b *buyer) runnable(o *op) bool {
	if o.blocked && b.ends == o.seenEnds && !o.givenUp() {
		return false // the database would refuse it again
	}
	if !b.resting || o.aside {
		return true
	}
	for server := range b.touched {
		if b.changes[server] != b.begun[server] {
			return true
		}
	}
	return false
}

// finish ends the run, however far it came, and waits for its goroutines.
// deadEnd tells the buyers that their wait is over.
func (r *run) finish(ctx context.Context, deadEnd bool) error {
	r.free.Store(true)
	for _, b := range r.buyers {
		switch {
		case deadEnd:
			b.cancel(purchase.ErrBusy)
		case !b.over:
			b.cancel(errCut)
		}
		r.cut = r.cut || deadEnd || !b.over || b.crashed
	}
	for _, b := range r.buyers {
		for _, o := range b.gate {
			r.letGo(o)
		}
		b.gate = nil
		if len(b.flying) > 0 && r.x.database.blocks() {
			if err := r.x.kill(ctx, r.x.connector(b.id), b.id); err != nil {
				return err
			}
		}
	}
	heard := r.x.gates.pubsub.used()
	left := r.x.concurrent || len(r.timers) > 0 || heard // goroutines that outlive Buy
	ended := make(chan struct{})
	go func() { r.outcome.Wait(); close(ended) }()
	for late := time.After(patience); ; {
		select {
		case <-ended:
		case e := <-r.events: // of a run that was interrupted: somebody was on the way to its gate
			if e.kind == arrived || e.kind == refused {
				r.letGo(e.op)
			}
			continue
		case <-late:
			return fmt.Errorf("%w: a buyer does not come back", ErrHarness)
		}
		break
	}
	for i, b := range r.buyers {
		if c, ok := b.strategy.(io.Closer); ok && (i == 0 || !r.x.config.Shared) {
			_ = c.Close()
		}
	}
	if left || r.cut {
		if err := r.x.awaitEnd(); err != nil {
			return err
		}
	}
	if heard {
		if err := r.x.unheard(ctx); err != nil {
			return err
		}
	}
	r.x.gates.current.Store(nil)
	return nil
}

// letGo sends an op on, when the schedule is over.
func (r *run) letGo(o *op) {
	if r.dead(o.buyer) {
		o.order <- die
	} else {
		o.order <- proceed
	}
}

// awaitEnd returns when no goroutine of a strategy is left: a command of one
// would turn up in the next run.
func (x *Explorer) awaitEnd() error {
	for deadline := time.Now().Add(patience); !strategiesEnded(&x.stacks); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: a goroutine of the strategy does not end", ErrHarness)
		}
	}
	return nil
}

// errCut ends buyers of a run that is not worth going on with.
var errCut = errors.New("explore: the rest of this schedule is not needed")

// deps are what the strategy of one buyer is built from; 0: of all buyers.
func (x *Explorer) deps(id int) lockstrategy.Deps {
	seat := x.seats[max(0, id-1)]
	d := lockstrategy.Deps{
		DB: seat.db, Now: x.clock.Now, Clock: &x.clock,
		Settings: lockstrategy.Settings{Wait: forever, LeaseTTL: forever, Poll: 0},
		Pause: func(ctx context.Context, _ time.Duration) {
			if r := x.gates.current.Load(); r != nil {
				r.pause(buyerOf(ctx, id))
			}
		},
	}
	d.Renewal = x.renewal(id)
	if len(x.config.Strategy.Needs) == 0 { // else its commands show it
		d.Observe = func(ctx context.Context, e lockstrategy.Event) {
			if r := x.gates.current.Load(); r != nil {
				r.observe(buyerOf(ctx, id), e.Kind)
			}
		}
	}
	if seat.redis != nil {
		d.Redis = seat.redis
	}
	for _, node := range seat.redlock {
		d.Redlock = append(d.Redlock, node)
	}
	return d
}

// forever is longer than any run: what runs out by the clock does so by an
// event of the schedule.
const forever = time.Hour
