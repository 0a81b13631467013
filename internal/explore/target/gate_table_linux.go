package target

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/rows"
	"github.com/oversell/oversell/internal/explore/wire"
)

// An op is a command of the run, from its arrival at the gate until its answer is delivered; or a
// message that a server has pushed.
type op struct {
	*wire.Command
	buyer    int    // its sender; 0: not known yet
	name     string // the same in every run, see names
	shown    string // for people
	behind   bool   // an earlier command of its connection is not answered yet
	waits    bool   // waits in its server for another connection
	timedOut bool   // the schedule has ended its wait
	noted    bool   // timed is known
	timed    bool   // it came without an answer to its buyer: a timer of the program has fired
	late     bool   // it waits for the point at which an earlier run had it, see memory
	setsUp   bool   // see setUp
	result   string // the answer for people, see run.learn
	known    bool   // result is set
	halves
	usage rows.Usage // see package rows
}

// forRows returns the command for package rows.
func (o *op) forRows() rows.Command {
	return rows.Command{Command: o.Command, Buyer: o.buyer, Timed: o.timed, Usage: &o.usage}
}

func forRows(all []*op) (commands []rows.Command) {
	for _, o := range all {
		commands = append(commands, o.forRows())
	}
	return commands
}

// A gateTable holds the commands of a run. It implements wire.Gate. The scheduler owns its lists; the
// connections add to fresh and answered, and remove what has ended.
type gateTable struct {
	traffic

	mu       sync.Mutex
	shut     bool // commands must wait
	conns    connections
	fresh    []*op // arrived since the last standstill
	held     []*op // at the gate, sorted by buyer
	flying   []*op // released
	answered []*op // not delivered yet
	byCmd    map[*wire.Command]*op
	still    bool         // the programs were idle, and received nothing since
	handed   *wire.Socket // the socket written to last, if nothing has come since
	handedTo int          // whose it is; 0: all
	dead     map[int]bool // by buyer: its program was killed in this run
	broken   *hangUp      // why the run is void
	refused  error        // the program cannot be explored, for this reason
	noted    []string     // commands that have passed since close
	bypass   bypass       // see app.Ignore
	sent     time.Time    // of the last command that is not ignored, or pushed message
	notices  *notices
	lone     *pollers  // records the commands while no buyer is there; nil: one may be there
	last     time.Time // of the last event

	uncommitted []*op   // executed, sorted by buyer; see splitting
	rush        overlap // while the gates are open
}

// A traffic counts arrivals, answers and the like without a lock.
type traffic struct {
	busy  atomic.Int64
	seq   atomic.Int64 // rises with everything that happens
	timed atomic.Bool  // see wire.Gate
	own   atomic.Int64 // the part of seq that belongs to ignored commands
	bell  *bell        // rings with everything that happens, and when busy falls to 0
}

// moves returns a number that rises with everything that happens, except ignored commands.
func (t *traffic) moves() int64 { return t.seq.Load() - t.own.Load() }

// Busy implements wire.Gate.
func (t *traffic) Busy(n int64) {
	if t.busy.Add(n) == 0 {
		t.bell.ring()
	}
}

// Timed implements wire.Gate: in a burst no gate ends a wait.
func (t *traffic) Timed() bool { return t.timed.Load() }

// of names a command and its buyer, for an error.
func (o *op) of() string {
	if o.buyer == 0 {
		return fmt.Sprintf("%q", o.Text)
	}
	return fmt.Sprintf("buyer %d: %q", o.buyer, o.Text)
}

// A hangUp is a command whose connection has ended.
type hangUp struct {
	op  *op
	err error
}

// newFloor returns open gates. listener is nil without PostgreSQL.
func newFloor(ignore app.Ignore, listener *app.Listener) (*gateTable, error) {
	bell, err := newBell()
	if err != nil {
		return nil, err
	}
	f := &gateTable{
		traffic: traffic{bell: bell},
		bypass:  newBypass(ignore),
		conns:   connections{joined: map[*wire.Conn]bool{}, used: map[*wire.Conn]bool{}, touched: map[*wire.Conn]bool{}, entering: map[*wire.Conn]bool{}, greeted: map[*wire.Conn]bool{}},
		byCmd:   map[*wire.Command]*op{}, rush: overlap{now: map[*wire.Command]bool{}},
	}
	f.notices = newNotices(f, listener)
	return f, nil
}

// happened is called with mu held.
func (f *gateTable) happened() {
	f.seq.Add(1)
	f.still, f.last = false, time.Now()
	f.bell.ring()
}

// Entered implements wire.Gate.
func (f *gateTable) Entered(c *wire.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.happened()
	f.conns.entering[c] = true
}

// Joined implements wire.Gate.
func (f *gateTable) Joined(c *wire.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.happened()
	delete(f.conns.entering, c)
	f.conns.joined[c], f.conns.greeted[c] = true, true
	f.refused = nil // a client that first asks for TLS and then does without it is not refused
}

// Left implements wire.Gate. It forgets the commands of the connection. If the program itself hung up
// on a command, the server may still execute it.
func (f *gateTable) Left(c *wire.Conn, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.happened()
	f.conns.leave(c)
	f.bypass.left(c)
	f.notices.left(c)
	f.rush.cut(c)
	if refused, ok := asRefused(err); ok && f.refused == nil {
		f.refused = refused
	}
	theirs := func(o *op) bool { return o.Conn() == c }
	for _, list := range []*[]*op{&f.fresh, &f.held, &f.flying, &f.uncommitted, &f.answered} {
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

// Arrived implements wire.Gate.
func (f *gateTable) Arrived(c *wire.Command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.happened()
	f.notices.arrived(c)
	if f.bypass.passes(c) {
		f.own.Add(1)
		return
	}
	f.handed = nil
	setsUp, used := isSetUp(c), f.conns.used[c.Conn()]
	if c.Gated {
		f.conns.touched[c.Conn()] = true
		f.conns.used[c.Conn()] = used || !setsUp
		f.sent = time.Now()
		f.lone.saw(c.Conn().Protocol, c.Text, c.Conn().Buyer, f.sent)
	}
	if !f.shut {
		return
	}
	if !c.Gated {
		f.noted = append(f.noted, c.Text)
		return
	}
	c.Hold()
	o := &op{Command: c, buyer: c.Conn().Buyer, behind: true, setsUp: setsUp && !used}
	f.byCmd[c] = o
	f.fresh = append(f.fresh, o)
}

// First implements wire.Gate.
func (f *gateTable) First(c *wire.Command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.byCmd[c]; o != nil {
		f.happened()
		o.behind = false
	} else if c.Gated {
		f.rush.enter(c)
	}
}

// Passed implements wire.Gate.
func (f *gateTable) Passed(c *wire.Command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.happened()
	f.rush.leave(c)
	if f.bypass.answered(c) {
		f.own.Add(1)
		return
	}
	f.handed, f.handedTo = c.Conn().Program(), c.Conn().Buyer
}

// Answered implements wire.Gate.
func (f *gateTable) Answered(c *wire.Command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	still := f.still
	f.happened()
	f.still = still // the answer was not passed on
	if c.Push {
		f.notices.pushed(c)
		f.sent = time.Now()
	}
	o := f.byCmd[c]
	switch {
	case o == nil && (!c.Push || !f.shut): // the command belongs to an earlier run
		return
	case o == nil:
		c.Hold()
		o = &op{Command: c, buyer: c.Conn().Buyer}
	}
	f.flying = slices.DeleteFunc(f.flying, func(other *op) bool { return other == o })
	f.answered = append(f.answered, o)
}

// letGo sends a command to its server.
func (f *gateTable) letGo(o *op) {
	f.mu.Lock()
	f.held = slices.DeleteFunc(f.held, func(other *op) bool { return other == o })
	f.flying = append(f.flying, o)
	still := f.still
	f.happened()
	f.still = still // no program has received anything
	f.mu.Unlock()
	o.Let()
}

// open lets everything pass and releases all commands at the gates. It returns the commands that wait
// in the servers and no longer have a limit of their own.
func (f *gateTable) open() (unlimited []*op) {
	f.mu.Lock()
	f.shut = false
	f.happened()
	var let, deliver []*op
	executed := f.uncommitted
	for _, o := range f.flying {
		if o.Unlimited != nil {
			unlimited = append(unlimited, o)
		}
	}
	let = append(append(let, f.fresh...), f.held...)
	deliver = slices.Concat(let, f.flying, executed, f.answered)
	f.fresh, f.held, f.flying, f.uncommitted, f.answered, f.byCmd = nil, nil, nil, nil, nil, map[*wire.Command]*op{}
	f.mu.Unlock()
	for _, o := range let {
		o.Release()
	}
	for _, o := range executed {
		o.Commit()
	}
	for _, o := range deliver {
		o.Deliver()
	}
	return unlimited
}

// close makes commands wait from now on.
func (f *gateTable) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shut, f.broken, f.still, f.noted, f.dead = true, nil, false, nil, map[int]bool{}
	clear(f.bypass.passed)
	f.happened()
}

// forget marks every connection as untouched.
func (f *gateTable) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.conns.touched)
}

// where lists the commands and where they are, for an error.
func (f *gateTable) where() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for what, list := range map[string][]*op{"has sent": f.fresh, "stands at": f.held, "waits for the answer to": f.flying, "has executed and not committed": f.uncommitted, "is to be answered": f.answered} {
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

// orRefused returns why the program cannot be explored, if the gates know it.
func (f *gateTable) orRefused(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refused != nil {
		return f.refused
	}
	return err
}

// asRefused finds a program that a gate has refused.
func asRefused(err error) (error, bool) {
	var refused *wire.Refused
	ok := errors.As(err, &refused)
	return refused, ok
}

// passed returns the commands that have passed since close.
func (f *gateTable) passed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.noted)
}
