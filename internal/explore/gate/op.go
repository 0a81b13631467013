package gate

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
)

// SQL names the database as a server.
const SQL = schedule.Database

// An Op is one command of one buyer, on its way to a server.
type Op struct {
	Buyer  int
	Server string // SQL, "redis", "redlock-1" ...
	Name   string // the command without its values, the same in every run
	Text   string // with its values, for people
	Effect schedule.Effect

	Background bool             // not sent by the buyer's own code: a renewal, or the end of a transaction whose context has ended
	Role       redisscript.Role // for a Redis command
	Key        string           // for a Redis command: the lock, or the first key
	Asks       bool             // it asks for a named lock of the database
	Gives      bool             // it releases a named lock of the database
	Controls   bool             // it begins or ends a transaction

	// Set when the command was executed.
	Result  string // for people
	Answer  string // everything that a strategy can see of the answer, if Result leaves something out
	Err     error
	Note    string
	Changed bool // it has written, or may have
	Ends    bool // it released locks of the database
	Commits bool // others can now see its writes, or those of the transaction that it ends

	// For the scheduler.
	Beside   *Op  // the command that was released together with it
	Blocked  bool // it was refused, see serverstate.WouldBlock, and waits for others
	SeenEnds int  // number of other buyers' transactions that had ended at its release

	ctx      context.Context // the end of this context ends the command
	conn     *Conn           // for an SQL command
	undo     func() error    // for a COMMIT of database/sql: the ROLLBACK that follows an error before it
	inBuy    bool            // see Gates.InBuy
	decision chan Decision
	timedOut atomic.Bool
}

// A Decision is the scheduler's decision on a command at the gate.
type Decision int

// The decisions.
const (
	Proceed      Decision = iota
	Die                   // its buyer has crashed
	ProceedAloud          // proceed, and report when it is on its way
	TimeOut               // its wait at the gate times out
	Raise                 // its buyer's code raises ErrRaised instead of sending it
	Panic                 // the same, with a panic
)

// Decide releases or ends a command at the gate.
func (o *Op) Decide(d Decision) { o.decision <- d }

// GivenUp reports whether the context of the command has ended.
func (o *Op) GivenUp() bool { return o.ctx != nil && o.ctx.Err() != nil }

// ErrRaised is the error of Raise. It is also sql.ErrTxDone: a COMMIT that was not sent has an outcome
// that is known.
var ErrRaised = fmt.Errorf("explore: the buyer's code raises: %w", sql.ErrTxDone)

// Raises reports whether the buyer's own code could raise an error instead of sending the command: an
// SQL statement that does not clean up.
func (o *Op) Raises() bool {
	return o.Server == SQL && !o.Background && !o.Gives && o.Name != "ROLLBACK" && !o.GivenUp()
}

// raise ends the command with ErrRaised. The server does not see it.
func (o *Op) raise() error {
	if o.undo != nil {
		if err := o.undo(); err != nil {
			return err
		}
	}
	return o.done(ErrRaised, "")
}

// errPanics is the error of Panic, see PanicIn.
var errPanics = fmt.Errorf("%w, as a panic", ErrRaised)

// Panics reports whether the buyer's own code could panic instead of sending the command: it sends it
// through gorm, in the goroutine of its Buy. A panic in another goroutine ends the process.
func (o *Op) Panics() bool { return o.Raises() && o.inBuy && !o.Asks && !o.Controls }

// PanicIn makes the code that sends a statement through db panic after the decision Panic. A panic in
// the driver itself would keep the connection: database/sql expects none there.
func PanicIn(db *gorm.DB) error {
	panics := func(db *gorm.DB) {
		if errors.Is(db.Error, errPanics) {
			panic(db.Error)
		}
	}
	c, name := db.Callback(), "explore:panic"
	return errors.Join(
		c.Create().After("*").Register(name, panics), c.Query().After("*").Register(name, panics),
		c.Update().After("*").Register(name, panics), c.Delete().After("*").Register(name, panics),
		c.Raw().After("*").Register(name, panics), c.Row().After("*").Register(name, panics),
	)
}

// EndWait records that the schedule has ended its wait.
func (o *Op) EndWait() { o.timedOut.Store(true) }

// TimedOut reports whether the schedule has ended its wait.
func (o *Op) TimedOut() bool { return o.timedOut.Load() }

// Conn returns its database connection; nil for other servers.
func (o *Op) Conn() *Conn { return o.conn }

// Got reports whether it asked for a named lock and has it.
func (o *Op) Got() bool { return o.Asks && o.Err == nil && strings.HasSuffix(o.Result, "=1") }

// statement describes it for the database.
func (o *Op) statement() serverstate.Statement {
	return serverstate.Statement{Conn: o.conn, NamedLock: o.Asks, TimedOut: o.TimedOut(), Read: o.conn.Viewing()}
}

// Whole returns everything that a strategy can see of its result.
func (o *Op) Whole() string { return cmp.Or(o.Answer, o.Result) }

// done records its result.
func (o *Op) done(err error, result string) error {
	o.Result = result
	if err != nil {
		o.Result = "error: " + err.Error()
	}
	return err
}
