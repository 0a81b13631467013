package gate

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
)

// SQL is the server of the database.
const SQL = schedule.Database

// An Op is one command of one buyer, on its way to a server.
type Op struct {
	Buyer  int
	Server string // SQL, "redis", "redlock-1" ...
	Name   string // what it is without its values: the same in every run
	Text   string // with its values, for people
	Effect schedule.Effect

	Background bool             // not the buyer's own doing: a renewal, the end of a transaction whose context has ended
	Role       redisscript.Role // of a Redis command
	Key        string           // of a Redis command: the lock, or the first key
	Asks       bool             // for a named lock of the database
	Gives      bool             // a named lock of the database back
	Controls   bool             // it begins or ends a transaction

	// Set when it was run.
	Result  string // for people
	Answer  string // all of it that a strategy can see, where Result leaves something out
	Err     error
	Note    string
	Changed bool // it wrote something, or may have
	Ends    bool // it freed locks of the database
	Commits bool // others see now what it has written, or the transaction that it ends

	// Of the scheduler.
	Beside   *Op  // was let go together with it
	Blocked  bool // it was refused, see serverstate.WouldBlock, and waits for the others
	SeenEnds int  // how many transactions of others had ended when it was let go

	ctx      context.Context // the command is given up when it ends
	conn     *Conn           // of an SQL command
	decision chan Decision
	timedOut atomic.Bool
}

// A Decision is what the scheduler does with a command at the gate.
type Decision int

// The decisions.
const (
	Proceed      Decision = iota
	Die                   // its buyer has crashed
	ProceedAloud          // and say when it is on its way
	TimeOut               // it has waited at the gate for long enough
)

// Decide lets a command at the gate go, or ends it.
func (o *Op) Decide(d Decision) { o.decision <- d }

// GivenUp reports whether the context of the command has ended.
func (o *Op) GivenUp() bool { return o.ctx != nil && o.ctx.Err() != nil }

// EndWait notes that the schedule has ended its wait.
func (o *Op) EndWait() { o.timedOut.Store(true) }

// TimedOut: the schedule has ended its wait.
func (o *Op) TimedOut() bool { return o.timedOut.Load() }

// Conn is the database connection that it goes over; nil for other servers.
func (o *Op) Conn() *Conn { return o.conn }

// Got: it asked for a named lock and has it.
func (o *Op) Got() bool { return o.Asks && o.Err == nil && strings.HasSuffix(o.Result, "=1") }

// statement is what the database must know of it.
func (o *Op) statement() serverstate.Statement {
	return serverstate.Statement{Conn: o.conn, NamedLock: o.Asks, TimedOut: o.TimedOut(), Read: o.conn.Viewing()}
}

// Whole is all that a strategy can see of how it ended.
func (o *Op) Whole() string { return cmp.Or(o.Answer, o.Result) }

// done notes how it ended.
func (o *Op) done(err error, result string) error {
	o.Result = result
	if err != nil {
		o.Result = "error: " + err.Error()
	}
	return err
}
