// Package rest decides when nothing moves, so that the explorer can choose the next step. Then every program sleeps, no
// byte is in transit, and every command waits: at its gate, or in its server for another connection.
//
// Rest checks the programs, Waits asks the servers, and Settling repeats both until neither moves.
package rest

import (
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/instance"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A Rest decides whether the programs of a run are idle, by the states of threads and the queues of kernels. It changes
// only the Pulse of the gates, which remembers the decision.
type Rest struct {
	gates     *gates.Gates
	instances *instance.Instances
	buyers    *client.Buyers
}

// New returns the Rest of one run with the buyers b.
func New(g *gates.Gates, i *instance.Instances, b *client.Buyers) *Rest { return &Rest{g, i, b} }

// IsRestful reports whether nothing is in transit and all programs sleep.
func (r *Rest) IsRestful() bool {
	r.gates.Pulse.Wake()
	return r.isQuiet()
}

// isQuiet reports whether nothing is in transit to, in, or from the programs.
func (r *Rest) isQuiet() bool {
	pulse := r.gates.Pulse
	if pulse.Still() {
		return true
	}
	before := pulse.Seq()
	// Bytes travel to a program, wake it, and travel from it. The checks have the same order, so no byte escapes all of
	// them. An answer that is not written yet counts as busy.
	return !pulse.Busy() && r.delivered() && r.Asleep() &&
		r.gates.Connections.Settled(r.sent) && r.buyers.HaveRead(r.sent) && !r.instances.Unaccepted() && pulse.MarkStill(before)
}

// delivered reports whether the programs' kernels have received all bytes sent to them. It checks the last write, unless
// something has come since, the last ignored answer, and the servers' part of each login.
func (r *Rest) delivered() bool {
	if s, to := r.gates.Pulse.Handed(); s != nil && !r.received(to, s) {
		return false
	}
	if last := r.gates.Bypass.Last(); last != nil && !r.received(last.Buyer, last.Program()) {
		return false
	}
	return r.gates.Connections.Welcomed(r.received)
}

// Asleep reports whether every program sleeps. It does not check programs that cannot have run since the last
// standstill.
func (r *Rest) Asleep() bool {
	for n, i := range r.instances.All {
		if r.mayRun(n+1) && i.Up() && !i.Program.Asleep() {
			return false
		}
	}
	return true
}

// mayRun reports whether a buyer's program may have run since the last standstill. Buyer 0 stands for the shared
// program.
func (r *Rest) mayRun(buyer int) bool {
	return len(r.instances.All) == 1 || r.buyers.Current == 0 || r.buyers.Current == buyer
}

// sent reports whether the program may have sent bytes that our socket has not received. While such bytes wait in a
// queue of the program's processor, the program may sleep already.
func (r *Rest) sent(buyer int, s *wire.Socket) bool {
	if !r.mayRun(buyer) {
		return false
	}
	n, err := r.instances.Of(max(buyer, 1)).Network.Unacknowledged(s.TCP())
	return n > 0 || err != nil
}

// received reports whether the kernel of the buyer's program has received every byte written to the socket. It asks
// that kernel, too, because an acknowledgement may take 40 ms.
func (r *Rest) received(buyer int, s *wire.Socket) bool {
	if s.Unacknowledged() == 0 {
		return true
	}
	n, err := r.instances.Of(max(buyer, 1)).Network.Received(s.TCP())
	return err == nil && n >= s.Written()
}

// SleepsWithin reports whether a program with a waiting buyer will continue by itself within the given time.
func (r *Rest) SleepsWithin(time time.Duration) bool {
	inside := r.buyers.Inside(r.gates.Table.Now())
	for n, i := range r.instances.All {
		if (len(r.instances.All) == 1 && len(inside) > 0 || slices.Contains(inside, n+1)) && i.Up() && i.Program.Sleeping(time) {
			return true
		}
	}
	return false
}
