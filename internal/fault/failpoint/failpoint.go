// Package failpoint stops one buyer inside a shop. The buyer then holds its lock, and no other buyer can see
// its write yet. The package does nothing unless `shop serve` is started with the hidden flag --failpoints, as
// `shop verify` starts its child processes.
//
// The failpoints are in the database driver and in the observer of lock events. Strategies do not know of them:
//
//	strategy -> gorm -> database/sql -> Conn (here) -> MySQL or SQLite
//
// Where a buyer stops depends on the kind of strategy:
//
//   - a lock around the critical section, and SQL that reads before it writes: after the read of
//     the product's row, or before the COMMIT;
//   - a counter in Redis (`redis-decr`): before the INSERT of the record, or before the COMMIT;
//   - an order that another goroutine writes (`redis-lua`): when the strategy has accepted the order.
//
// The protocol is line-based. The parent process sends commands to one pipe and reads events from the other.
//
//	in:  hold PURCHASER POINT | go PURCHASER, where PURCHASER * is the first buyer that reaches the point
//	     clock OFFSET, such as 3s: moves the clock of the strategies | pool: asks for the maximum of connections
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

// A Point is a place where a buyer can be stopped.
type Point string

// The points.
const (
	// Read is the earlier of two points: after the read of the product's row, or before the INSERT of the record.
	// The buyer has decided but has not written. On SQLite it is where the transaction that writes begins.
	Read Point = "read"
	// Commit is inside the driver, when COMMIT is about to be sent. After this point the shop checks neither a
	// context nor the clock, so neither a lease nor its watchdog can stop the COMMIT.
	Commit Point = "commit"
	// Release is where a strategy gives its lock back. The database has answered the buyer's COMMIT by then,
	// unless the COMMIT itself releases the lock.
	Release Point = "release"
)

// Anybody stands for the first buyer that reaches the point.
const Anybody = "*"

// A Set contains the failpoints of one shop. Its methods may be called by several goroutines.
type Set struct {
	mu    sync.Mutex
	out   io.Writer
	holds map[string]*hold // stopped buyers, by purchaser
	ahead time.Duration    // by how much Now is ahead of the machine's clock

	conns, mostConns int64 // connections of the buyers' pool: now, and their maximum so far
}

// hold is one buyer that is stopped, or that will stop when it reaches the point.
type hold struct {
	at       Point
	reported bool
	goOn     chan struct{}
}

// New makes a set that writes the history to out, one event per line.
func New(out io.Writer) *Set {
	return &Set{out: out, holds: map[string]*hold{}}
}

// Record writes an event. It does not buffer, so a SIGKILL loses no earlier event.
func (s *Set) Record(e history.Event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic("an event cannot be written as JSON: " + err.Error()) // an event contains only strings, numbers and times
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(append(line, '\n')) // a write fails only when the shop is about to be killed
}

// Obey reads commands and executes them until r ends.
func (s *Set) Obey(r io.Reader) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		switch words := strings.Fields(lines.Text()); {
		case len(words) == 3 && words[0] == "hold":
			s.arm(words[1], Point(words[2]))
		case len(words) == 2 && words[0] == "go":
			s.release(words[1])
		case len(words) == 2 && words[0] == "clock":
			s.setClock(words[1])
		case len(words) == 1 && words[0] == "pool":
			s.mu.Lock()
			most := s.mostConns
			s.mu.Unlock()
			s.Record(history.Event{Kind: history.Pool, At: time.Now(), Amount: most})
		default:
			s.Record(history.Event{Kind: "error", At: time.Now(), Outcome: fmt.Sprintf("%q is no command", lines.Text())})
		}
	}
}

func (s *Set) connected(more int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns += more
	s.mostConns = max(s.mostConns, s.conns)
}

// Now returns the time for strategies: this machine's time plus the offset of the last command "clock". The
// history keeps this machine's time, since it compares processes.
func (s *Set) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

func (s *Set) setClock(offset string) {
	ahead, err := time.ParseDuration(offset)
	if err != nil {
		s.Record(history.Event{Kind: "error", At: time.Now(), Outcome: err.Error()})
		return
	}
	s.mu.Lock()
	s.ahead = ahead
	s.mu.Unlock()
	s.Record(history.Event{Kind: history.Clock, At: time.Now(), Outcome: s.Now().Format(time.RFC3339Nano)})
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

// reached stops the buyer of ctx here if a hold command named it and this point. It stops each buyer only once.
func (s *Set) reached(ctx context.Context, at Point) {
	o, ok := ctx.Value(orderKey{}).(purchase.Order)
	if !ok {
		return
	}
	s.mu.Lock()
	if anybody := s.holds[Anybody]; anybody != nil && anybody.at == at && s.holds[o.Purchaser] == nil {
		delete(s.holds, Anybody) // the hold now belongs to this buyer
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
	<-h.goOn // an ended context does not end the wait: a real stopped process would not check its context either
	s.Record(history.Event{Kind: history.Resumed, At: time.Now(), Product: o.Product, Purchaser: o.Purchaser})
}

// Admitted is called when a strategy has accepted a buyer's order and another goroutine will write it. For
// such an order this call is both points, Read and Commit.
func (s *Set) Admitted(ctx context.Context) {
	s.reached(ctx, Read)
	s.reached(ctx, Commit)
}

// Releasing is called before a strategy gives a lock back.
func (s *Set) Releasing(ctx context.Context) { s.reached(ctx, Release) }

type orderKey struct{}

// named puts each order into its context, so that the driver knows which buyer sent a statement.
type named struct{ purchase.Strategy }

// Named wraps a strategy, so that the failpoints know its buyers.
func (s *Set) Named(strategy purchase.Strategy) purchase.Strategy { return named{strategy} }

// Buy implements purchase.Strategy.
func (n named) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	return n.Strategy.Buy(context.WithValue(ctx, orderKey{}, o), o)
}
