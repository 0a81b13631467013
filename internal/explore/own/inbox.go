package own

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// room is how many reports the channel can hold while the scheduler is busy with a server. If the channel is full, a
// buyer waits a moment longer.
const room = 64

type reportKind int

const (
	arrived  reportKind = iota // a command waits at its gate, which holds it until the scheduler releases it
	finished                   // the server has executed the command
	refused                    // SQLite refused the command as busy, so it waits at the gate again
	lost                       // the gate does not know whether the server executed the command
	paused                     // an attempt has failed, and the buyer pauses before the next one
	returned                   // Buy has returned
)

var kinds = map[gate.Kind]reportKind{gate.Arrived: arrived, gate.Finished: finished, gate.Refused: refused, gate.Lost: lost}

// A report is one thing that a buyer's goroutine did.
type report struct {
	kind  reportKind
	buyer int
	op    *gate.Op
	err   error
}

// An inbox receives the reports of the buyers' goroutines, which the scheduler's goroutine reads. It implements
// gate.Scheduler.
type inbox struct {
	reports chan report
	sent    chan struct{} // receives a value when a command released with gate.ProceedAloud has been sent
	free    atomic.Bool   // the schedule is over, so the gates let every command pass

	mu      sync.Mutex
	crashed map[int]bool
	locks   []lockEvent // locks in memory that were taken or released since the last step
}

func newInbox() *inbox {
	return &inbox{reports: make(chan report, room), sent: make(chan struct{}, 1), crashed: map[int]bool{}}
}

// Free implements gate.Scheduler.
func (in *inbox) Free() bool { return in.free.Load() }

// Dead implements gate.Scheduler.
func (in *inbox) Dead(buyer int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.crashed[buyer]
}

// Hear implements gate.Scheduler.
func (in *inbox) Hear(r gate.Message) {
	e := report{kind: kinds[r.Kind], op: r.Op, err: r.Err}
	if r.Op != nil {
		e.buyer = r.Op.Buyer
	}
	in.reports <- e
}

// Sent implements gate.Scheduler.
func (in *inbox) Sent() { in.sent <- struct{}{} }

// crash makes the gates drop all further commands of the buyer.
func (in *inbox) crash(buyer int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.crashed[buyer] = true
}

// pause implements lockstrategy.Deps.Pause.
func (in *inbox) pause(buyer int) {
	if !in.Free() && !in.Dead(buyer) {
		in.reports <- report{kind: paused, buyer: buyer}
	}
}

type lockEvent struct {
	buyer int
	kind  lockstrategy.EventKind
}

// observe implements lockstrategy.Deps.Observe.
func (in *inbox) observe(buyer int, kind lockstrategy.EventKind) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, shown := lockWords[kind]; shown && !in.crashed[buyer] {
		in.locks = append(in.locks, lockEvent{buyer, kind})
	}
}

// lockEvents returns the lock events since the last call. It sorts them by buyer, because they arrive in an order that
// the schedule does not determine.
func (in *inbox) lockEvents() []lockEvent {
	in.mu.Lock()
	defer in.mu.Unlock()
	events := in.locks
	in.locks = nil
	slices.SortStableFunc(events, func(a, b lockEvent) int { return a.buyer - b.buyer })
	return events
}
