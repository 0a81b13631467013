// Package strike breaks something in the middle of a crowd of the live page or of shop rush:
// one of its shop processes, a server, or the way between them. Each fault is one file and one
// line of All.
//
//	crowd's buyers call -> one of them is stopped where it has read and not written -> the fault -> it goes on
//
// It shares the words, the signals and the links of internal/fault, whose plays have few buyers
// and servers of their own; here the crowd is a rush's, and the servers are the engine's. A fault proves that it
// struck, or returns an error that is fault.ErrMissed and says why it did not.
package strike

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed"
)

// A Fault is one way to strike.
type Fault struct {
	Name  promise.Condition `json:"name"`  // whose promise the crowd is compared with
	About string            `json:"about"` // what it does, without a full stop
	// Cannot says why it cannot be struck on the engine; "" where it can. Nil: it can on each.
	Cannot func(e *engine.Engine) string `json:"-"`
	// Several: with one process alone nobody else is there whom it would let in, or who would go on.
	Several bool `json:"-"`
	// Strike does it, and mends what it broke.
	Strike func(ctx context.Context, f *Field) (proof string, err error) `json:"-"`
}

// All lists the faults in display order.
func All() []Fault {
	return []Fault{
		crash(),
		pause(),
		slowSection(),
		clientGone(),
		redisRestart(),
		nodeRestart(),
		latency(),
		partition(),
		leaseRevoked(),
		dbKill(),
	}
}

// On are those that the engine can strike.
func On(e *engine.Engine) (faults []Fault) {
	for _, f := range All() {
		if f.WhyNot(e) == "" {
			faults = append(faults, f)
		}
	}
	return faults
}

// WhyNot says why the fault cannot be struck on the engine; "" where it can.
func (f Fault) WhyNot(e *engine.Engine) string {
	if f.Cannot == nil {
		return ""
	}
	return f.Cannot(e)
}

// Unused says why the fault strikes nothing of a strategy with these needs; "" where it does.
// It is the rule by which the matrix leaves a cell out.
func (f Fault) Unused(needs []lockstrategy.Need) string {
	if lockstrategy.Strikes(f.Name, needs) {
		return ""
	}
	return fmt.Sprintf("%s strikes only what uses %s", f.Name, strings.Join(promise.Struck(f.Name), " or "))
}

// withoutLockServers is Fault.Cannot of what stands between the shops and their lock servers.
func withoutLockServers(e *engine.Engine) string {
	if len(e.LockServers) == 0 {
		return "the lock servers are not the engine's own: it has not started them"
	}
	return ""
}

func missed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", fault.ErrMissed, fmt.Sprintf(format, args...))
}

// Processes are the shops behind the crowd.
type Processes interface {
	Kill(process int) error
	StartAgain(ctx context.Context, process int) error // at the same address
	Freeze(process int) error
	Thaw(process int) error
	Ended(process int) bool
	Answers(ctx context.Context, process int, within time.Duration) bool
	Tell(process int, line string) error // see internal/fault/failpoint
	Links() []testbed.Links              // of each process to the engine's lock servers
}

// struck is the process whose buyer is stopped.
const struck = 0

// A Field is one crowd, from its restock on. Its methods may be called by several
// goroutines.
type Field struct {
	Product   string
	Processes Processes
	Engine    *engine.Engine
	At        failpoint.Point // where the buyer is stopped
	Wait      time.Duration   // of a buyer
	Lease     time.Duration
	Needs     []lockstrategy.Need      // of the strategy that the crowd buys by
	HangUp    func(nth int) (left int) // has each nth buyer without an answer close its connection

	striking sync.Mutex // one fault at a time: what another breaks would be this one's proof
	stopped  string     // the fault's own: the buyer that was stopped last

	mu      sync.Mutex
	waiting bool            // for a buyer to stop
	inside  map[string]bool // buyers of the struck process that have no answer
	sold    int             // of all processes
	held    chan string     // the buyer that stopped
	sales   chan struct{}   // holds one after a sale
	over    chan struct{}   // closed when no buyer will come any more
}

// NewField returns the field of a crowd that is about to be sent, with the time-outs of its shops.
func NewField(e *engine.Engine, p Processes, product string, at failpoint.Point, wait, lease time.Duration) *Field {
	return &Field{
		Engine: e, Processes: p, Product: product, At: at, Wait: wait, Lease: lease,
		inside: map[string]bool{}, held: make(chan string, 1), sales: make(chan struct{}, 1), over: make(chan struct{}),
	}
}

// Strike strikes the crowd with one fault, when those before it have mended what they broke.
func (f *Field) Strike(ctx context.Context, fault Fault) (proof string, err error) {
	f.striking.Lock()
	defer f.striking.Unlock()
	return fault.Strike(ctx, f)
}

// Note takes an event of a process, and never waits.
func (f *Field) Note(process int, e history.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Kind == history.Return && e.Amount > 0 {
		f.sold++
		select {
		case f.sales <- struct{}{}:
		default:
		}
	}
	if process != struck {
		return
	}
	switch e.Kind {
	case history.Call:
		f.inside[e.Purchaser] = true
	case history.Return:
		delete(f.inside, e.Purchaser)
	case history.Holding:
		if !f.waiting { // it came too late
			f.goOn(e.Purchaser)
			return
		}
		f.waiting = false
		select {
		case f.held <- e.Purchaser:
		default: // one is held already
			f.goOn(e.Purchaser)
		}
	}
}

func (f *Field) goOn(purchaser string) {
	_ = f.Processes.Tell(struck, "go "+purchaser) // of a process that is gone nobody is stopped
}

// hold stops the first buyer of the struck process that is about to write, and returns how it
// goes on. It stops none when none comes there while buyers wait.
func (f *Field) hold(ctx context.Context) (release func(), err error) {
	return f.holdAt(ctx, f.At)
}

// holdAt is hold at another point.
func (f *Field) holdAt(ctx context.Context, at failpoint.Point) (release func(), err error) {
	return f.holdUntil(ctx, at, time.After(f.Wait))
}

// holdUntil is holdAt with other patience.
func (f *Field) holdUntil(ctx context.Context, at failpoint.Point, patience <-chan time.Time) (release func(), err error) {
	f.mu.Lock()
	f.waiting = true
	err = f.Processes.Tell(struck, "hold "+failpoint.Anybody+" "+string(at))
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case purchaser := <-f.held:
		f.stopped = purchaser
		return func() { f.goOn(purchaser) }, nil
	case <-f.over:
		err = missed("the crowd was gone before one of its buyers was stopped; a larger one stays longer")
	case <-patience:
		err = missed("no buyer came to where it writes in time")
	case <-ctx.Done():
		err = ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = false
	f.goOn(failpoint.Anybody)
	select {
	case purchaser := <-f.held: // in between
		f.goOn(purchaser)
	default:
	}
	return nil, err
}

// awaitSales waits until so many units are sold.
func (f *Field) awaitSales(ctx context.Context, n int) error {
	patience := time.After(f.Wait)
	for {
		if _, sold := f.under(); sold >= n {
			return nil
		}
		select {
		case <-f.sales:
		case <-f.over:
			return missed("the crowd was gone before %d units were sold", n)
		case <-patience:
			return missed("fewer than %d units were sold in %s", n, f.Wait)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// few sales beside a buyer that is stopped are enough to be seen: what it writes then is old.
const few = 3

// meanwhile waits until so many more units are sold, or the crowd is gone, that long at most,
// and returns how many were.
func (f *Field) meanwhile(ctx context.Context, n int, within time.Duration) (sold int) {
	_, before := f.under()
	patience := time.After(within)
	for {
		if _, now := f.under(); now-before >= n {
			return now - before
		}
		select {
		case <-f.sales:
			continue
		case <-f.over:
		case <-patience:
		case <-ctx.Done():
		}
		_, now := f.under()
		return now - before
	}
}

// awaitReturn waits until the buyer that was stopped last has its answer, as long as a buyer
// waits.
func (f *Field) awaitReturn(ctx context.Context) {
	pending := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.inside[f.stopped]
	}
	for deadline := time.Now().Add(f.Wait); pending() && time.Now().Before(deadline) && ctx.Err() == nil; {
		pauseFor(ctx, 10*time.Millisecond)
	}
}

// besideHeld lets a lease end while a buyer is stopped and its process runs on, and returns how
// many units others were sold meanwhile. ErrMissed where the process did not answer.
func (f *Field) besideHeld(ctx context.Context) (sold int, err error) {
	_, before := f.under()
	pauseFor(ctx, f.outlast())
	_, now := f.under()
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case !f.Processes.Answers(ctx, struck, f.Lease):
		return 0, missed("the process of the buyer that was stopped did not answer")
	}
	return now - before, nil
}

// outlast is longer than a lease that nobody renews.
func (f *Field) outlast() time.Duration { return f.Lease + f.Lease/4 + 200*time.Millisecond }

// Over says that all buyers have their answers. It is called once.
func (f *Field) Over() { close(f.over) }

// under returns how many buyers the struck process has not answered, and how many sales
// there were.
func (f *Field) under() (inside, sold int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.inside), f.sold
}

// forget drops the buyers of a process that was killed.
func (f *Field) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.inside)
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
