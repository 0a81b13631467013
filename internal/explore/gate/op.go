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

// SQL is the name of the database as a server.
const SQL = schedule.Database

// An Op is one command of one buyer, on its way to a server.
type Op struct {
	Buyer  int
	Server string // SQL, "redis", "redlock-1" ...
	Name   string // the command without its values, the same in every run
	Text   string // command with its values
	Effect schedule.Effect

	Background bool             // not sent by the buyer's own code: a renewal, or the end of a transaction whose context has ended
	Role       redisscript.Role // for a Redis command
	Key        string           // for a Redis command: the lock, or the first key
	Asks       bool             // it requests a named lock of the database
	Gives      bool             // it releases a named lock of the database
	Controls   bool             // it begins or ends a transaction

	// Set when the command was executed.
	Result  string // shown to the user
	Answer  string // everything that a strategy can see of the answer, if Result omits a part
	Err     error
	Note    string
	Changed bool // it has written, or may have
	Ends    bool // it released locks of the database
	Commits bool // others can now see its writes, or those of the transaction that it ends

	// For the scheduler.
	Beside   *Op  // the command that was released at the same time
	Blocked  bool // it would block in the server (serverstate.WouldBlock), so it waits at the gate for other buyers
	SeenEnds int  // number of other buyers' transactions that had ended when it was released

	ctx      context.Context // the end of this context ends the command
	conn     *Conn           // for an SQL command
	undo     func() error    // for a COMMIT of database/sql: the ROLLBACK that runs instead after an error of the buyer's code
	inBuy    bool            // it was sent by a goroutine that executes Strategy.Buy
	decision chan Decision
	timedOut atomic.Bool
}

type Decision int

const (
	Proceed      Decision = iota
	Die                   // the buyer has crashed
	ProceedAloud          // proceed, and report when the command has been sent
	TimeOut               // the command's wait at the gate times out
	Raise                 // the buyer's code raises ErrRaised instead of sending the command
	Panic                 // the buyer's code panics instead of sending the command
)

// Decide releases or ends a command at the gate.
func (o *Op) Decide(d Decision) { o.decision <- d }

// GivenUp reports whether the context of the command has ended.
func (o *Op) GivenUp() bool { return o.ctx != nil && o.ctx.Err() != nil }

// ErrRaised is the error of Raise. It wraps sql.ErrTxDone, which says that a COMMIT was not sent, so its outcome
// is known.
var ErrRaised = fmt.Errorf("explore: the buyer's code raises: %w", sql.ErrTxDone)

// Raises reports whether the buyer's own code could raise an error instead of sending the command. The command must be
// an SQL statement that is not part of a cleanup.
func (o *Op) Raises() bool {
	return o.Server == SQL && !o.Background && !o.Gives && o.Name != "ROLLBACK" && !o.GivenUp()
}

// raise ends the command with ErrRaised, without sending it.
func (o *Op) raise() error {
	if o.undo != nil {
		if err := o.undo(); err != nil {
			return err
		}
	}
	return o.done(ErrRaised, "")
}

// errPanics is the error of the decision Panic. The callbacks of PanicIn turn it into a panic.
var errPanics = fmt.Errorf("%w, as a panic", ErrRaised)

// Panics reports whether the buyer's own code could panic instead of sending the command. That code must send the
// command through gorm, in the goroutine of the buyer's Buy. A panic in another goroutine would end the process.
func (o *Op) Panics() bool { return o.Raises() && o.inBuy && !o.Asks && !o.Controls }

// PanicIn registers callbacks with gorm that panic after the decision Panic, for statements sent through db. The driver
// itself must not panic, since database/sql would then never free the connection.
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

// EndWait records that the schedule has ended the command's wait.
func (o *Op) EndWait() { o.timedOut.Store(true) }

// TimedOut reports whether the schedule has ended the command's wait.
func (o *Op) TimedOut() bool { return o.timedOut.Load() }

// Conn returns the command's database connection; nil for other servers.
func (o *Op) Conn() *Conn { return o.conn }

// Got reports whether the command requested a named lock and got it.
func (o *Op) Got() bool { return o.Asks && o.Err == nil && strings.HasSuffix(o.Result, "=1") }

func (o *Op) statement() serverstate.Statement {
	return serverstate.Statement{Conn: o.conn, NamedLock: o.Asks, TimedOut: o.TimedOut(), Read: o.conn.Viewing()}
}

// Whole returns everything that a strategy can see of the result.
func (o *Op) Whole() string { return cmp.Or(o.Answer, o.Result) }

func (o *Op) done(err error, result string) error {
	o.Result = result
	if err != nil {
		o.Result = "error: " + err.Error()
	}
	return err
}
