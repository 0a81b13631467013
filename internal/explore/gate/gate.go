// Package gate stops the commands of the buyers on their way to the servers, until
// the scheduler lets them go: a wrapped driver.Connector for SQL, a go-redis hook
// for Redis, and a tap on the connections that messages come by.
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

// errCrashed is what a crashed buyer's commands return.
var errCrashed = errors.New("explore: this buyer has crashed")

// A Kind is what happened to a command.
type Kind int

// The kinds of Report.
const (
	Arrived  Kind = iota // it stands at the gate
	Finished             // it was run
	Refused              // it would block, and is to stand there again
	Lost                 // the gate does not know what it does
)

// A Report is what a gate has to say of a command.
type Report struct {
	Kind Kind
	Op   *Op
	Err  error // of Lost
}

// A Scheduler decides when commands go on. Its methods are called by the buyers'
// goroutines.
type Scheduler interface {
	Free() bool          // the schedule is over: let everything pass
	Dead(buyer int) bool // it has crashed
	Hear(r Report)       // may block
	Sent()               // an op of ProceedAloud is on its way; may block
}

// Gates stop the commands of the schedule that is under way. Without one they
// pass. They outlive schedules, as the connections do.
type Gates struct {
	PubSub *PubSub

	scripts   *scripts
	scheduler atomic.Pointer[Scheduler]
}

// New makes gates that know these scripts.
func New(described []redisscript.Description) *Gates {
	return &Gates{PubSub: newPubSub(), scripts: newScripts(described)}
}

// Attach has s decide from now on; nil: everything passes.
func (g *Gates) Attach(s Scheduler) {
	if s == nil {
		g.scheduler.Store(nil)
		return
	}
	g.scheduler.Store(&s)
}

// deciding returns the scheduler that decides; nil when everything passes.
func (g *Gates) deciding() Scheduler {
	s := g.scheduler.Load()
	if s == nil || (*s).Free() {
		return nil
	}
	return *s
}

// Pass runs exec when the scheduler says so. exec fills in what o says of the
// result.
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
	o.decision = make(chan Decision, 1)
	s.Hear(Report{Kind: Arrived, Op: o})
	var waits serverstate.WouldBlock // what it was refused with
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
		case o.GivenUp(): // as the drivers do: it is not sent any more
			err = o.done(o.ctx.Err(), "")
		case decision == TimeOut:
			err = o.done(waits.Unwrap(), "")
		default:
			err = exec()
		}
		if errors.As(err, &waits) && !s.Free() {
			s.Hear(Report{Kind: Refused, Op: o})
			continue
		}
		o.Err = err
		s.Hear(Report{Kind: Finished, Op: o})
		return err
	}
}
