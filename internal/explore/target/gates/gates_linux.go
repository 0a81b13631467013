// Package gates holds the commands of programs under test on their way to the servers. (Package explore/gate does this
// for strategies of the catalogue.) It knows which command waits at a gate, which is at its server, and whether
// anything has moved since.
//
//	program -- Connections -- Table: fresh, held, flying, uncommitted, answered -- server
//	                           |
//	Pulse: rises with everything that happens
//
// The goroutines of the connections report to Gates. One goroutine, the scheduler, reads where the commands are
// (Table.Now), and moves them on.
package gates

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/load/pulse"
)

// Gates implements wire.Gate for all connections of the programs. Each part owns its data, but one lock guards all
// parts: one message may change several parts, and only all together show a standstill. Exported methods of the parts
// take the lock. Their other methods must be called with the lock held.
type Gates struct {
	Pulse       *Pulse
	Table       *Table
	Connections *Connections
	Notices     *Notices
	Bypass      *Bypass
	Trouble     *Trouble
	Crowd       *Crowd
	OwnTraffic  *OwnTraffic

	mu    *sync.Mutex
	timed atomic.Bool // see wire.Gate
	alive *pulse.Pulse
}

// New returns open gates. Call End when they are no longer needed. Without PostgreSQL, `listener` is nil.
func New(a *app.App, listener *app.Listener) (*Gates, error) {
	bell, err := newBell()
	if err != nil {
		return nil, err
	}
	mu, alive := &sync.Mutex{}, pulse.Start()
	g := &Gates{mu: mu, alive: alive, Pulse: &Pulse{mu: mu, bell: bell, Since: alive.Since}, Crowd: &Crowd{now: map[*wire.Command]bool{}}, Trouble: &Trouble{mu: mu}}
	g.Table = &Table{mu: mu, pulse: g.Pulse, byCmd: map[*wire.Command]*Op{}}
	g.Connections = &Connections{mu: mu, pulse: g.Pulse, joined: map[*wire.Conn]bool{}, used: map[*wire.Conn]bool{}, touched: map[*wire.Conn]bool{}, entering: map[*wire.Conn]bool{}, greeted: map[*wire.Conn]bool{}}
	g.Notices = newNotices(g.Pulse, listener)
	g.Bypass = newBypass(mu, a.Ignore)
	g.OwnTraffic = &OwnTraffic{app: a, pulse: g.Pulse}
	return g, nil
}

// End frees what New has opened.
func (g *Gates) End() error {
	g.alive.Stop()
	return g.Pulse.bell.close()
}

// Close shuts the gates: from now on, commands wait.
func (g *Gates) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Table.shut, g.Table.all = true, false
	g.Trouble.clear()
	g.Bypass.clear()
	g.Pulse.happened()
}

// Open lets everything pass and releases all commands at the gates. It returns the commands that are at a server and
// could wait there forever, since the gates have removed their time-out.
func (g *Gates) Open() (unlimited []*Op) {
	g.mu.Lock()
	now := g.Table.empty()
	g.Pulse.happened()
	g.mu.Unlock()
	let := slices.Concat(now.Fresh, now.Held)
	for _, o := range let {
		o.Release()
	}
	for _, o := range now.Uncommitted {
		o.Commit()
	}
	for _, o := range slices.Concat(let, now.Flying, now.Uncommitted, now.Answered) {
		o.Deliver()
	}
	return slices.DeleteFunc(now.Flying, func(o *Op) bool { return o.Unlimited == nil })
}

// Pass lets a fresh command pass, so that it is no step.
func (g *Gates) Pass(o *Op) {
	g.mu.Lock()
	g.Bypass.ungated = append(g.Bypass.ungated, o.Text)
	g.mu.Unlock()
	g.Table.Pass(o)
}

// EndByClock makes the time-outs of the programs apply from now on, for bursts. By default, the gates remove them.
func (g *Gates) EndByClock() { g.timed.Store(true) }

// Timed implements wire.Gate.
func (g *Gates) Timed() bool { return g.timed.Load() }

// Busy implements wire.Gate.
func (g *Gates) Busy(n int64) { g.Pulse.add(n) }

// Entered implements wire.Gate.
func (g *Gates) Entered(c *wire.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Pulse.happened()
	g.Connections.entering[c] = true
}

// Joined implements wire.Gate.
func (g *Gates) Joined(c *wire.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Pulse.happened()
	g.Connections.join(c)
	g.Trouble.refused = nil // a client that first asks for TLS, and then continues without it, can be explored
}

// Left implements wire.Gate. The connection's commands are forgotten. If the program closed the connection before the
// answer to a command, the server may still execute it.
func (g *Gates) Left(c *wire.Conn, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Pulse.happened()
	g.Connections.leave(c)
	g.Bypass.left(c)
	g.Notices.left(c)
	g.Crowd.cut(c)
	g.Trouble.left(c, err, g.Table.left(c))
}

// Arrived implements wire.Gate.
func (g *Gates) Arrived(c *wire.Command) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Pulse.happened()
	g.Notices.arrived(c)
	if g.Bypass.passes(c) {
		g.Pulse.ignored()
		return
	}
	g.Pulse.handed = nil
	setsUp := g.Connections.carries(c)
	if c.Gated {
		g.OwnTraffic.saw(c)
	}
	if !g.Table.shut {
		return
	}
	if !c.Gated && (c.Silent || !g.Table.all) {
		g.Bypass.ungated = append(g.Bypass.ungated, c.Text)
		return
	}
	c.Hold()
	g.Table.arrived(&Op{Command: c, Buyer: c.Conn().Buyer, Behind: true, SetsUp: setsUp, Free: !c.Gated})
}

// First implements wire.Gate.
func (g *Gates) First(c *wire.Command) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.Table.byCmd[c]; o != nil {
		g.Pulse.happened()
		o.Behind = false
	} else if c.Gated {
		g.Crowd.enter(c)
	}
}

// Passed implements wire.Gate.
func (g *Gates) Passed(c *wire.Command) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Pulse.happened()
	g.Crowd.leave(c)
	if g.Bypass.answered(c) {
		g.Pulse.ignored()
		return
	}
	g.Pulse.handed, g.Pulse.handedTo = c.Conn().Program(), c.Conn().Buyer
}

// Answered implements wire.Gate. The program does not receive the answer yet.
func (g *Gates) Answered(c *wire.Command) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Pulse.counts()
	if c.Push {
		g.Notices.pushed(c)
		g.OwnTraffic.heard()
	}
	g.Table.answered(c)
}
