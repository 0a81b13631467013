package own

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// room is how many reports can wait while the scheduler asks a server something. A buyer that
// finds it full waits, so it decides nothing.
const room = 64

type reportKind int

const (
	arrived  reportKind = iota // an op stands at the gate
	finished                   // it was run
	refused                    // it would block, and is to stand there again
	lost                       // a gate does not know what a command does
	paused                     // a round of tries has ended
	returned                   // Buy has
)

// kinds are the gate's reports.
var kinds = map[gate.Kind]reportKind{gate.Arrived: arrived, gate.Finished: finished, gate.Refused: refused, gate.Lost: lost}

// A report is what a buyer's goroutine has done.
type report struct {
	kind  reportKind
	buyer int
	op    *gate.Op
	err   error
}

// An inbox is where the buyers' goroutines report. It is gate.Scheduler: what it
// hears the scheduler's goroutine reads from reports.
type inbox struct {
	reports chan report
	sent    chan struct{} // an op of gate.ProceedAloud is on its way
	free    atomic.Bool   // the schedule is over: let everything pass

	mu      sync.Mutex
	crashed map[int]bool
	locks   []lockEvent // in memory, since the step before
}

func newInbox() *inbox {
	return &inbox{reports: make(chan report, room), sent: make(chan struct{}, 1), crashed: map[int]bool{}}
}

// Free is gate.Scheduler.Free.
func (in *inbox) Free() bool { return in.free.Load() }

// Dead is gate.Scheduler.Dead.
func (in *inbox) Dead(buyer int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.crashed[buyer]
}

// Hear is gate.Scheduler.Hear.
func (in *inbox) Hear(r gate.Report) {
	e := report{kind: kinds[r.Kind], op: r.Op, err: r.Err}
	if r.Op != nil {
		e.buyer = r.Op.Buyer
	}
	in.reports <- e
}

// Sent is gate.Scheduler.Sent.
func (in *inbox) Sent() { in.sent <- struct{}{} }

// crash notes that a buyer is never heard of again.
func (in *inbox) crash(buyer int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.crashed[buyer] = true
}

// pause is lockstrategy.Deps.Pause.
func (in *inbox) pause(buyer int) {
	if !in.Free() && !in.Dead(buyer) {
		in.reports <- report{kind: paused, buyer: buyer}
	}
}

// A lockEvent is a lock in memory that a buyer has taken or freed.
type lockEvent struct {
	buyer int
	kind  lockstrategy.EventKind
}

// observe is lockstrategy.Deps.Observe.
func (in *inbox) observe(buyer int, kind lockstrategy.EventKind) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, shown := lockWords[kind]; shown && !in.crashed[buyer] {
		in.locks = append(in.locks, lockEvent{buyer, kind})
	}
}

// lockEvents are those since it was called last, the buyers in order: which of
// them was first is not the schedule's.
func (in *inbox) lockEvents() []lockEvent {
	in.mu.Lock()
	defer in.mu.Unlock()
	events := in.locks
	in.locks = nil
	slices.SortStableFunc(events, func(a, b lockEvent) int { return a.buyer - b.buyer })
	return events
}
