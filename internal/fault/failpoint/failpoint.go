// Package failpoint stops one buyer inside a shop, between the moment that it
// has the lock and the moment that others can see its write, so that a fault
// finds a holder that really holds. It is off unless `shop serve` is given
// the hidden flag --failpoints, as `shop verify` does with its children.
//
// It stands in the database driver and in the observer of lock events, and the
// strategies know nothing of it:
//
//	strategy -> gorm -> database/sql -> Conn (here) -> MySQL or SQLite
//
// What each kind of strategy needs:
//   - a lock around the section, and SQL that reads before it writes: the read of
//     the product's row, or the COMMIT;
//   - a counter in Redis (redis-decr): the INSERT of the record, or the COMMIT;
//   - an order that another goroutine writes (redis-lua): the event of its admission.
//
// The protocol is lines. The process that started the shop sends commands to one side
// and reads events from the other.
//
//	in:  hold PURCHASER POINT | go PURCHASER, with * for the first buyer that gets there
//	out: {"kind":"holding","purchaser":...}, and every other event of the history
package failpoint

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/purchase"
)

// A Point is where a buyer is stopped.
type Point string

// The points.
const (
	// Read is after the product's row was read, or before the record is inserted,
	// whichever comes first: the buyer has decided, and has not written. On SQLite it
	// is where the transaction begins that writes.
	Read Point = "read"
	// Commit is inside the driver, when COMMIT is about to be sent. Nothing looks
	// at a context or at the clock any more: it is the pause that no lease and no
	// watchdog can see.
	Commit Point = "commit"
)

// Anybody, in the place of a purchaser, is the first buyer that gets to the point.
const Anybody = "*"

// A Set is the failpoints of one shop. Its methods may be called by several
// goroutines.
type Set struct {
	mu    sync.Mutex
	out   io.Writer
	holds map[string]*hold // by purchaser
}

// hold is one buyer that is, or will be, stopped.
type hold struct {
	at       Point
	reported bool
	goOn     chan struct{}
}

// New makes a set that writes the history to out, a line an event.
func New(out io.Writer) *Set {
	return &Set{out: out, holds: map[string]*hold{}}
}

// Record writes an event. The line is written at once, so that an event from before a
// SIGKILL is never missing.
func (s *Set) Record(e history.Event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic("an event cannot be written as JSON: " + err.Error()) // its members are strings, numbers and times
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(append(line, '\n')) // a failure means that the shop is about to be ended
}

// Obey reads commands until r ends.
func (s *Set) Obey(r io.Reader) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		switch words := strings.Fields(lines.Text()); {
		case len(words) == 3 && words[0] == "hold":
			s.arm(words[1], Point(words[2]))
		case len(words) == 2 && words[0] == "go":
			s.release(words[1])
		default:
			s.Record(history.Event{Kind: "error", At: time.Now(), Outcome: fmt.Sprintf("%q is no command", lines.Text())})
		}
	}
}

func (s *Set) arm(purchaser string, at Point) {
	s.mu.Lock()
	s.holds[purchaser] = &hold{at: at, goOn: make(chan struct{})}
	s.mu.Unlock()
	s.Record(history.Event{Kind: history.Armed, At: time.Now(), Purchaser: purchaser})
}

func (s *Set) release(purchaser string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.holds[purchaser]; h != nil {
		close(h.goOn)
		delete(s.holds, purchaser)
	}
}

// reached stops the buyer if it is to be stopped at this point; once.
func (s *Set) reached(ctx context.Context, at Point) {
	o, ok := ctx.Value(orderKey{}).(purchase.Order)
	if !ok {
		return
	}
	s.mu.Lock()
	if anybody := s.holds[Anybody]; anybody != nil && anybody.at == at && s.holds[o.Purchaser] == nil {
		delete(s.holds, Anybody) // it is this buyer's from now on
		s.holds[o.Purchaser] = anybody
	}
	h := s.holds[o.Purchaser]
	if h == nil || h.reported || h.at != at {
		s.mu.Unlock()
		return
	}
	h.reported = true
	s.mu.Unlock()
	s.Record(history.Event{Kind: history.Holding, At: time.Now(), Product: o.Product, Purchaser: o.Purchaser, Outcome: string(at)})
	<-h.goOn // whatever its context says: a process that is stopped does not look at it either
	s.Record(history.Event{Kind: history.Resumed, At: time.Now(), Product: o.Product, Purchaser: o.Purchaser})
}

// Admitted is called when a buyer's order has been taken by a strategy whose
// writes are another goroutine's: both points are here.
func (s *Set) Admitted(ctx context.Context) {
	s.reached(ctx, Read)
	s.reached(ctx, Commit)
}

// orderKey is the order in the context of its buy.
type orderKey struct{}

// named puts the order into the context, for the driver to know whose statement
// it is.
type named struct{ purchase.Strategy }

// Named wraps a strategy.
func (s *Set) Named(strategy purchase.Strategy) purchase.Strategy { return named{strategy} }

// Buy is purchase.Strategy.Buy.
func (n named) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	return n.Strategy.Buy(context.WithValue(ctx, orderKey{}, o), o)
}
