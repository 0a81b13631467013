// Package gate holds each command of the catalogue's strategies on its way to a server until the
// scheduler releases it. (Package target/gates does the same for a program under test.) It wraps the
// driver.Connector for SQL, adds a hook to go-redis, and observes the connections that deliver messages.
//
//	strategy -> database/sql -> Connector \
//	                                       Gates.Pass <-> Scheduler
//	strategy -> go-redis -----> hook      /
//
// A gate for another protocol makes an Op of each command and calls Gates.Pass.
package gate

import (
	"database/sql/driver"
	"errors"
	"sync/atomic"

	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
)

var errCrashed = errors.New("explore: this buyer has crashed")

// A Kind tells what happened to a command.
type Kind int

const (
	Arrived  Kind = iota // the command waits at the gate
	Finished             // the command was executed
	Refused              // the command would block, and must wait at the gate again
	Lost                 // the gate does not know the command's effect
)

// A Message is the report of a gate about one command.
type Message struct {
	Kind Kind
	Op   *Op
	Err  error // for Lost: the reason
}

// A Scheduler decides when commands continue. The buyers' goroutines call its methods.
type Scheduler interface {
	Free() bool          // reports that the schedule is over, so all commands pass
	Dead(buyer int) bool // reports that the buyer has crashed
	Hear(r Message)      // reports a command to the scheduler; may block
	Sent()               // called when a command whose Decision was ProceedAloud has been sent; may block
}

// Gates hold the commands of the current schedule; between schedules, all commands pass. They exist as long as the
// connections.
type Gates struct {
	PubSub *PubSub
	InBuy  func() bool // reports whether its caller runs in a goroutine that executes Strategy.Buy; nil: never

	scripts   *scripts
	scheduler atomic.Pointer[Scheduler]
}

// New makes gates that know the described scripts.
func New(described []redisscript.Description) *Gates {
	return &Gates{PubSub: newPubSub(), scripts: newScripts(described)}
}

// Attach sets the scheduler that decides from now on. With nil, all commands pass.
func (g *Gates) Attach(s Scheduler) {
	if s == nil {
		g.scheduler.Store(nil)
		return
	}
	g.scheduler.Store(&s)
}

// deciding returns the scheduler that decides, or nil if all commands pass.
func (g *Gates) deciding() Scheduler {
	s := g.scheduler.Load()
	if s == nil || (*s).Free() {
		return nil
	}
	return *s
}

// Pass runs exec when the scheduler releases o. The function exec must fill in the result fields of o.
func (g *Gates) Pass(o *Op, exec func() error) error {
	if o.conn != nil && o.conn.dead.Load() {
		return driver.ErrBadConn
	}
	s := g.deciding()
	if s == nil {
		return exec()
	}
	if s.Dead(o.Buyer) {
		return errCrashed
	}
	o.decision, o.inBuy = make(chan Decision, 1), g.InBuy != nil && o.Raises() && g.InBuy()
	s.Hear(Message{Kind: Arrived, Op: o})
	var waits serverstate.WouldBlock // the last refusal of the database
	for {
		decision := <-o.decision
		switch decision {
		case Die:
			return errCrashed
		case ProceedAloud:
			s.Sent()
		}
		var err error
		switch {
		case o.GivenUp(): // like a driver, do not send the command any more
			err = o.done(o.ctx.Err(), "")
		case decision == TimeOut:
			err = o.done(waits.Unwrap(), "")
		case decision == Raise:
			err = o.raise()
		case decision == Panic:
			err = o.done(errPanics, "")
		default:
			err = exec()
		}
		if errors.As(err, &waits) && !s.Free() {
			s.Hear(Message{Kind: Refused, Op: o})
			continue
		}
		o.Err = err
		s.Hear(Message{Kind: Finished, Op: o})
		return err
	}
}
