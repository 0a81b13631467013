package target

import (
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/wire"
)

// A rest decides by thread states and kernel queues whether the programs of a run are idle. It changes
// nothing.
type rest struct{ *run }

// restful reports whether nothing is busy and the programs sleep.
func (r rest) restful() bool {
	r.x.gateTable.wake()
	return r.quiet()
}

// quiet reports whether nothing is on its way to, in, or from the programs.
func (r rest) quiet() bool {
	if r.still() {
		return true
	}
	f := r.x.gateTable
	before := f.seq.Load()
	// Bytes go to a program, wake it, and come from it. The looks follow in that order, so that none of
	// these bytes is missed. An answer that is not yet written counts as busy.
	if f.busy.Load() != 0 || !r.delivered() || !r.asleep() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.conns.settled(r.sent) || !r.bytesRead() || r.x.instances.unaccepted() || f.busy.Load() != 0 || f.seq.Load() != before {
		return false
	}
	f.still = true // until an event or the next delivery
	return true
}

// still reports whether quiet has returned true, and nothing has come or was delivered since.
func (r rest) still() bool {
	f := r.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.still
}

// delivered reports whether the programs' kernels have received the last write, unless something has
// come since, the last ignored answer, and the servers' part of a login.
func (r rest) delivered() bool {
	f := r.x.gateTable
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handed != nil && !r.received(f.handedTo, f.handed) {
		return false
	}
	if last := f.bypass.last; last != nil && !r.received(last.Buyer, last.Program()) {
		return false
	}
	return f.conns.welcomed(r.received)
}

// asleep reports whether every program sleeps, except those that cannot have run since the last
// standstill.
func (r rest) asleep() bool {
	for i, p := range r.x.instances.all {
		if r.mayRun(i+1) && p.up() && !p.program.Asleep() {
			return false
		}
	}
	return true
}

// mayRun reports whether the program may have run since the last standstill. Buyer 0 stands for the
// shared program.
func (r rest) mayRun(buyer int) bool {
	return len(r.x.instances.all) == 1 || r.current == 0 || r.current == buyer
}

// sent reports whether the program may have sent bytes that our socket has not received. The program
// may sleep while they wait in a queue of its processor.
func (r rest) sent(buyer int, s *wire.Socket) bool {
	if !r.mayRun(buyer) {
		return false
	}
	n, err := r.x.instances.of(max(buyer, 1)).space.Unacknowledged(s.TCP())
	return n > 0 || err != nil
}

// received reports whether the kernel of the buyer's program has received every byte written to the
// socket. It asks that kernel, too, since an acknowledgement may take 40 ms.
func (r rest) received(buyer int, s *wire.Socket) bool {
	if s.Unacknowledged() == 0 {
		return true
	}
	n, err := r.x.instances.of(max(buyer, 1)).space.Received(s.TCP())
	return err == nil && n >= s.Written()
}

// bytesRead reports whether no answer to a buyer waits to be read. It is called with gateTable.mu held.
func (r rest) bytesRead() bool {
	for _, b := range r.buyers {
		if b.alive && b.socket != nil && (r.sent(b.id, b.socket) || b.socket.Unread() > 0) {
			return false
		}
	}
	return true
}

// inside returns the buyers without an answer and without a command at a gate or on its way. It is
// called with gateTable.mu held.
func (r rest) inside() (who []int) {
	f := r.x.gateTable
	for _, b := range r.buyers {
		if b.alive && !slices.ContainsFunc(slices.Concat(f.held, f.flying, f.uncommitted, f.answered), b.sent) {
			who = append(who, b.id)
		}
	}
	return who
}

// sleeping reports whether a buyer is inside a program that will continue by itself after some time.
func (r rest) sleeping() bool { return r.nappingWithin(longestSleep) }

func (r rest) nappingWithin(time time.Duration) bool {
	f := r.x.gateTable
	f.mu.Lock()
	inside := r.inside()
	f.mu.Unlock()
	for i, p := range r.x.instances.all {
		if (len(r.x.instances.all) == 1 && len(inside) > 0 || slices.Contains(inside, i+1)) && p.up() && p.program.Sleeping(time) {
			return true
		}
	}
	return false
}
