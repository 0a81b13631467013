package target

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/oversell/oversell/internal/explore/wire"
)

// An op is a command of the run, from its arrival at the gate until its answer was handed
// over; or a message that a server has pushed.
type op struct {
	*wire.Command
	buyer    int    // whose it is; 0: not known yet
	name     string // of what it is in every run, see names
	shown    string // for people
	behind   bool   // another command of its connection is before it
	waits    bool   // in its server, for another's
	timedOut bool   // the schedule has ended its wait
	noted    int    // its step in the witness, from 1; 0: none yet
}

// A floor is where commands stand. It is a wire.Gate. Its lists are the scheduler's; the
// connections add to fresh and answered, and take what has gone.
type floor struct {
	busy atomic.Int64
	seq  atomic.Int64 // whatever happens

	mu       sync.Mutex
	shut     bool // commands wait
	conns    map[*wire.Conn]bool
	entering map[*wire.Conn]bool // log in
	ending   []*wire.Conn        // their programs have hung up, and the server may not be through with them
	greeted  map[*wire.Conn]bool // have logged in, and may not have been told yet
	fresh    []*op               // have arrived since the last standstill
	held     []*op               // at the gate, in the order of the buyers
	flying   []*op               // let go
	answered []*op               // not handed over yet
	byCmd    map[*wire.Command]*op
	still    bool         // the programs were at rest, and nothing was handed to them since
	handed   *wire.Socket // what was written to last, as long as nothing has come since
	dead     map[int]bool // buyers whose program was killed in this run
	broken   *hangUp      // why the run is void
	refused  error        // a program that cannot be explored
	noted    []string     // commands that have passed since close
	rush     overlap      // while the gates are open

	timed atomic.Bool // see wire.Gate
}

// of is a command and whose it is, for an error.
func (o *op) of() string {
	if o.buyer == 0 {
		return fmt.Sprintf("%q", o.Text)
	}
	return fmt.Sprintf("buyer %d: %q", o.buyer, o.Text)
}

// A hangUp is a command whose connection has gone.
type hangUp struct {
	op  *op
	err error
}

func newFloor() *floor {
	return &floor{
		conns: map[*wire.Conn]bool{}, entering: map[*wire.Conn]bool{}, greeted: map[*wire.Conn]bool{},
		byCmd: map[*wire.Command]*op{}, rush: overlap{now: map[*wire.Command]bool{}},
	}
}

// happened is called with mu held.
func (f *floor) happened() {
	f.seq.Add(1)
	f.still = false
}

// Busy is wire.Gate's.
func (f *floor) Busy(n int64) { f.busy.Add(n) }

// Entered is wire.Gate's.
func (f *floor) Entered(c *wire.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.happened()
	f.entering[c] = true
}

// Joined is wire.Gate's.
func (f *floor) Joined(c *wire.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.happened()
	delete(f.entering, c)
	f.conns[c], f.greeted[c] = true, true
	f.refused = nil // a client that first asks for TLS, and does without, is none
}

// Left is wire.Gate's. What has gone with the connection is forgotten; that a program hangs
// up on a command of its own leaves open what the server does with it.
func (f *floor) Left(c *wire.Conn, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.happened()
	if f.conns[c] && c.ID != 0 {
		f.ending = append(f.ending, c)
	}
	delete(f.conns, c)
	delete(f.entering, c)
	delete(f.greeted, c)
	f.rush.cut(c)
	if refused, ok := asRefused(err); ok && f.refused == nil {
		f.refused = refused
	}
	theirs := func(o *op) bool { return o.Conn() == c }
	for _, list := range []*[]*op{&f.fresh, &f.held, &f.flying, &f.answered} {
		for _, o := range *list {
			if theirs(o) {
				delete(f.byCmd, o.Command)
				if f.shut && !o.Push && f.broken == nil && !f.dead[o.buyer] && !errors.Is(err, io.ErrClosedPipe) {
					f.broken = &hangUp{o, err}
				}
			}
		}
		*list = slices.DeleteFunc(*list, theirs)
	}
}

// Arrived is wire.Gate's.
func (f *floor) Arrived(c *wire.Command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.happened()
	f.handed = nil
	if !f.shut {
		return
	}
	if !c.Gated {
		f.noted = append(f.noted, c.Text)
		return
	}
	c.Hold()
	o := &op{Command: c, buyer: c.Conn().Buyer, behind: true}
	f.byCmd[c] = o
	f.fresh = append(f.fresh, o)
}

// First is wire.Gate's.
func (f *floor) First(c *wire.Command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.byCmd[c]; o != nil {
		f.happened()
		o.behind = false
	} else if c.Gated {
		f.rush.enter(c)
	}
}

// Passed is wire.Gate's.
func (f *floor) Passed(c *wire.Command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.happened()
	f.handed = c.Conn().Program()
	delete(f.rush.now, c)
}

// Timed is wire.Gate's: in a rush nobody else ends a wait.
func (f *floor) Timed() bool { return f.timed.Load() }

// An overlap is which commands are at the servers, and how many were at once, at most. All of
// it is called with floor.mu held.
type overlap struct {
	now  map[*wire.Command]bool
	most int
	left []*wire.Conn // connections that have gone with a command at its server
}

func (o *overlap) enter(c *wire.Command) {
	o.now[c] = true
	o.most = max(o.most, len(o.now))
}

// cut: a connection has gone. What it had at its server may still be done there.
func (o *overlap) cut(c *wire.Conn) {
	for command := range o.now {
		if command.Conn() == c {
			delete(o.now, command)
			o.left = append(o.left, c)
		}
	}
}

// Answered is wire.Gate's.
func (f *floor) Answered(c *wire.Command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	still := f.still
	f.happened()
	f.still = still // it was not handed on
	o := f.byCmd[c]
	switch {
	case o == nil && (!c.Push || !f.shut): // of a run that is over
		return
	case o == nil:
		c.Hold()
		o = &op{Command: c, buyer: c.Conn().Buyer}
	}
	f.flying = slices.DeleteFunc(f.flying, func(other *op) bool { return other == o })
	f.answered = append(f.answered, o)
}

// letGo sends a command to its server.
func (f *floor) letGo(o *op) {
	f.mu.Lock()
	f.held = slices.DeleteFunc(f.held, func(other *op) bool { return other == o })
	f.flying = append(f.flying, o)
	f.happened()
	f.mu.Unlock()
	o.Let()
}

// open lets everything pass, and all that stands at the gates go. It returns what waits in the
// servers and will not be ended by its own limit any more.
func (f *floor) open() (unlimited []*op) {
	f.mu.Lock()
	f.shut = false
	f.happened()
	var let, deliver []*op
	for _, o := range f.flying {
		if o.Unlimited != nil {
			unlimited = append(unlimited, o)
		}
	}
	let = append(append(let, f.fresh...), f.held...)
	deliver = append(append(append(deliver, let...), f.flying...), f.answered...)
	f.fresh, f.held, f.flying, f.answered, f.byCmd = nil, nil, nil, nil, map[*wire.Command]*op{}
	f.mu.Unlock()
	for _, o := range let {
		o.Release()
	}
	for _, o := range deliver {
		o.Deliver()
	}
	return unlimited
}

// close has commands wait from now on.
func (f *floor) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shut, f.broken, f.still, f.noted, f.dead = true, nil, false, nil, map[int]bool{}
	f.happened()
}

// of are the connections of a buyer's program.
func (f *floor) of(buyer int) (all []*wire.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		if c.Buyer == buyer {
			all = append(all, c)
		}
	}
	return all
}

// settledBytes: none is on its way between the programs, the gates and the servers. sent says
// how much a program has sent to a socket of ours that has not come. It is called with mu held.
func (f *floor) settledBytes(sent func(buyer int, s *wire.Socket) bool) bool {
	for _, conns := range []map[*wire.Conn]bool{f.conns, f.entering} {
		for c := range conns {
			if c.Program().Unread() > 0 || c.Server().Unread() > 0 || sent(c.Buyer, c.Program()) {
				return false
			}
		}
	}
	// A program that logs in may sleep while the server's part of it is on its way.
	for _, conns := range []map[*wire.Conn]bool{f.entering, f.greeted} {
		for c := range conns {
			if c.Program().Unacknowledged() > 0 {
				return false
			}
			delete(f.greeted, c)
		}
	}
	// An acknowledgement may take 40 ms, so only what was written last is asked for it, and
	// only while nothing has come since.
	return f.handed == nil || f.handed.Unacknowledged() == 0
}

// handedOver: the programs' kernels have all that was written to them.
func (f *floor) handedOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		if c.Program().Unacknowledged() > 0 {
			return false
		}
	}
	return true
}

// where says what stands where, for an error.
func (f *floor) where() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for what, list := range map[string][]*op{"has sent": f.fresh, "stands at": f.held, "waits for the answer to": f.flying, "is to be answered": f.answered} {
		for _, o := range list {
			all = append(all, fmt.Sprintf("buyer %d %s %q", o.buyer, what, o.Text))
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return "nothing stands at a gate"
	}
	return strings.Join(all, ", ")
}

// standing is how many commands could be at the servers at once now, if all were let go.
func (f *floor) standing() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.flying)
	for _, o := range f.held {
		if !o.behind {
			n++
		}
	}
	return n
}

// gather begins to count anew what is at the servers at once.
func (f *floor) gather() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rush.most, f.rush.left = len(f.rush.now), nil
}

// gathered is what there was since.
func (f *floor) gathered() (most int, left []*wire.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rush.most, slices.Clone(f.rush.left)
}

// passed are the commands that no gate has held, since close.
func (f *floor) passed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.noted)
}
