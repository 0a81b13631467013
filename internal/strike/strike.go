// Package strike breaks something in the middle of a crowd that the live page has sent:
// one of its shop processes, or a server. Each fault is one file and one line of All.
//
//	crowd's buyers call -> one of them is stopped where it has read and not written -> the fault -> it goes on
//
// It shares the words and the signals of internal/fault, whose plays have few buyers and
// servers behind links of their own; here the crowd is a rush's. A fault proves that it
// struck, or returns an error that is fault.ErrMissed and says why it did not.
package strike

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/history"
	"github.com/oversell/oversell/internal/promise"
)

// A Fault is one way to strike.
type Fault struct {
	Name  promise.Condition `json:"name"`  // whose promise the crowd is compared with
	About string            `json:"about"` // what it does, without a full stop
	// Can tells whether it can be struck on the engine.
	Can func(e *engine.Engine) bool `json:"-"`
	// Strike does it, and mends what it broke.
	Strike func(ctx context.Context, f *Field) (proof string, err error) `json:"-"`
}

// All lists the faults in display order.
func All() []Fault {
	return []Fault{crash(), pause(), clientGone(), redisRestart(), dbKill()}
}

// On are those that the engine can strike.
func On(e *engine.Engine) (faults []Fault) {
	for _, f := range All() {
		if f.Can(e) {
			faults = append(faults, f)
		}
	}
	return faults
}

func always(*engine.Engine) bool { return true }

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
	Tell(process int, line string) error // see internal/failpoint
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
	HangUp    func(nth int) (left int) // has each nth buyer without an answer close its connection

	striking sync.Mutex // one fault at a time: what another breaks would be this one's proof

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
	f.mu.Lock()
	f.waiting = true
	err = f.Processes.Tell(struck, "hold "+failpoint.Anybody+" "+string(f.At))
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case purchaser := <-f.held:
		return func() { f.goOn(purchaser) }, nil
	case <-f.over:
		err = missed("the crowd was gone before one of its buyers was stopped")
	case <-time.After(f.Wait):
		err = missed("for %s no buyer came to where it writes", f.Wait)
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

// keys counts the keys in Redis that have the product's name in theirs.
func (f *Field) keys(ctx context.Context) (n int, err error) {
	scan := func(c redis.UniversalClient) error {
		for all := c.Scan(ctx, 0, "*"+f.Product+"*", 1000).Iterator(); ; n++ {
			if !all.Next(ctx) {
				return all.Err()
			}
		}
	}
	return n, scan(f.Engine.Redis)
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
