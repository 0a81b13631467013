package fault

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed"
)

// firstProcess is the index of the process in which a fault stops a buyer.
const firstProcess = 0

// few is the number of other sales after which the stopped buyer's decision rests on an outdated read.
const few = 3

// A ToldProcess is a shop process that accepts the commands of package failpoint, which stop a buyer.
type ToldProcess interface {
	Process
	Tell(command string) error
}

// A RunningRush lets a fault act on one burst of a rush's buyers, which begins with the restock. It knows the buyer
// that a fault has stopped, and the sales to other buyers. Its methods may be called by several goroutines.
type RunningRush struct {
	Engine  *engine.Engine
	First   ToldProcess
	Links   []testbed.Links // links of each process to the engine's lock servers
	Standby *Standby        // replica that replaces Redis in a failover; nil if no fault needs it

	// InGroups means that one transaction sells to many buyers.
	InGroups bool

	product string
	write   failpoint.Point // the last failpoint before a write becomes visible
	times   Times

	injecting sync.Mutex // held during an injection: the damage of one fault must not count as proof of another
	repairs
	held string // the buyer that was stopped last

	tally *tally
	stops chan string // receives the name of the buyer that stopped

	mu      sync.Mutex
	waiting bool // whether hold waits for a buyer to stop
}

// NewRunningRush returns the field (the environment of faults) of a rush that is about to begin. `times` are
// those of its shops.
func NewRunningRush(e *engine.Engine, first ToldProcess, product string, write failpoint.Point, times Times) *RunningRush {
	return &RunningRush{
		Engine: e, First: first, product: product, write: write, times: times,
		stops: make(chan string, 1), tally: newTally(),
	}
}

// Inject waits for earlier faults to repair their damage, and then injects a fault.
func (r *RunningRush) Inject(ctx context.Context, f Fault) (proof string, err error) {
	r.injecting.Lock()
	defer r.injecting.Unlock()
	proof, err = f.InRush(ctx, r)
	if broken := r.repair(context.WithoutCancel(ctx)); broken != nil {
		return "", fmt.Errorf("the repair after %s: %w", f.Name, broken)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", err
	}
	return proof, nil
}

// Note receives an event from the history of a process. It never blocks.
func (r *RunningRush) Note(process int, e history.Event) {
	switch {
	case e.Kind == history.Return && e.Amount > 0:
		r.tally.sale()
	case e.Kind == history.Holding && process == firstProcess:
		r.stopped(e.Purchaser)
	}
	if process == firstProcess {
		r.tally.note(e)
	}
}

// stopped passes a stopped buyer to the method hold. If hold does not wait for one, the buyer continues at once.
func (r *RunningRush) stopped(purchaser string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting { // if not, the buyer reached its failpoint too late
		r.waiting = false
		select {
		case r.stops <- purchaser:
			return
		default: // another buyer is stopped already
		}
	}
	r.goOn(purchaser)
}

func (r *RunningRush) goOn(purchaser string) {
	_ = r.First.Tell("go " + purchaser) // an ended process returns an error, and has no stopped buyer
}

// Over reports that all buyers have their answers. It must be called once.
func (r *RunningRush) Over() { close(r.tally.over) }

func (r *RunningRush) setting() Setting {
	return Setting{Times: r.times, Product: r.product, Write: r.write, InRush: true}
}

// hold stops the first buyer of the first process that reaches the failpoint. It returns an error if none
// reaches it within a buyer's maximum wait.
func (r *RunningRush) hold(ctx context.Context, at failpoint.Point) (inside int, err error) {
	r.mu.Lock()
	r.waiting = true
	err = r.First.Tell("hold " + failpoint.Anybody + " " + string(at))
	r.mu.Unlock()
	if err != nil {
		return 0, err
	}
	select {
	case r.held = <-r.stops:
		r.afterwards(func(context.Context) error { return r.release() })
		return r.tally.inside(), nil
	case <-r.tally.over:
		err = missed("the crowd was gone before one of its buyers was stopped; a larger one stays longer")
	case <-time.After(r.times.Wait):
		err = missed("no buyer reached its write in time")
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = false
	r.goOn(failpoint.Anybody)
	select {
	case purchaser := <-r.stops: // the buyer stopped just now
		r.goOn(purchaser)
	default:
	}
	return 0, err
}

func (r *RunningRush) release() error {
	r.goOn(r.held)
	return nil
}

func (r *RunningRush) others(ctx context.Context, shortest, longest time.Duration) {
	before := r.tally.sold()
	pauseFor(ctx, shortest)
	if sold := r.tally.sold() - before; sold < few {
		r.tally.await(ctx, few-sold, longest-shortest)
	}
}

func (r *RunningRush) process() Process { return rushProcess{r.First, r.tally} }

// A rushProcess is the first process. Its method StartAgain removes the buyers of the killed process from the
// tally.
type rushProcess struct {
	ToldProcess
	tally *tally
}

func (p rushProcess) StartAgain(ctx context.Context) error {
	p.tally.forget()
	return p.ToldProcess.StartAgain(ctx)
}

func (r *RunningRush) redis() (*redisServers, testbed.Links) {
	return &r.Standby.redisServers, slices.Concat(r.Links...).Of(string(lockstrategy.NeedsRedis))
}

// injected does nothing: the rush's history contains the events of its processes, and its report contains
// the proof.
func (r *RunningRush) injected(string, ...any) {}

// A tally counts the buyers inside the first process and the sales of all processes.
type tally struct {
	over  chan struct{} // closed when no more buyers will come
	sales chan struct{} // contains an element after a sale

	mu      sync.Mutex
	pending map[string]bool // buyers of the first process without an answer
	n       int             // number of sales
}

func newTally() *tally {
	return &tally{over: make(chan struct{}), sales: make(chan struct{}, 1), pending: map[string]bool{}}
}

func (t *tally) sale() {
	t.mu.Lock()
	t.n++
	t.mu.Unlock()
	select {
	case t.sales <- struct{}{}:
	default:
	}
}

func (t *tally) note(e history.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Kind {
	case history.Call:
		t.pending[e.Purchaser] = true
	case history.Return:
		delete(t.pending, e.Purchaser)
	}
}

// forget drops the buyers of the first process, which was killed.
func (t *tally) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.pending)
}

func (t *tally) inside() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pending)
}

func (t *tally) sold() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// await waits until n more units are sold, or all buyers are answered, or the given time is over.
func (t *tally) await(ctx context.Context, n int, within time.Duration) {
	before, patience := t.sold(), time.After(within)
	for t.sold()-before < n {
		select {
		case <-t.sales:
		case <-t.over:
			return
		case <-patience:
			return
		case <-ctx.Done():
			return
		}
	}
}
