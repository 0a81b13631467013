// Package wire holds commands on the network. A program in any language connects to a gate instead of
// its database or Redis. Each command waits there until the scheduler releases it.
//
//	program -> Conn -> Session.Next -> Gate.Arrived ... let go -> server
//	program <- Conn <- delivered ... Gate.Answered <- Session.Receive <- server
//
// Each protocol is a folder below this one. It knows how commands and answers are framed and what they
// mean. The Gate decides what waits and when it continues.
package wire

import (
	"bufio"
	"net"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
)

// A Protocol is a protocol between programs and a server.
type Protocol struct {
	Name string // "mysql", "postgres" or "redis"; used in oversell.yaml and in Choice.Touches
	// Open begins a session between a program that has connected and the server.
	Open func(program, server *Socket) Session
}

// A Session is one connection as its protocol sees it. Login is called first. Then two goroutines call Next and
// Receive, so their common state needs a lock. After a method has failed, it is not called again.
//
// A session must refuse a program that wants TLS, or an authentication that cannot be relayed. It tells the
// program why in the protocol's own words, and then fails with a *Refused.
type Session interface {
	// Login relays the greeting and the authentication, and removes capabilities that the gate cannot handle.
	// It returns the server's number for the connection: MySQL's thread id, PostgreSQL's process id,
	// Redis' client id, or 0 if the server does not tell it.
	Login() (id int64, err error)

	// Next reads the program's next command. It blocks only in Socket.Read. The error is io.EOF if the
	// program has hung up.
	Next() (*Command, error)

	// Receive reads one message from the server. Its first byte has already come. The parameter `current` is
	// the command that was sent and has no complete answer yet, or nil. With the message that ends the answer,
	// Receive fills in current.Answer.
	Receive(current *Command) (Message, error)

	// TimedOut serves the event `timeout`, for which the explorer interrupts `current`. If `raw` reports the
	// interruption, TimedOut returns the answer of a lock wait time-out instead, and changes current.Answer.
	// Otherwise it returns `raw`.
	TimedOut(current *Command, raw []byte) []byte
}

// A Refused is the error for a program that cannot be explored. It says in one line what to do.
type Refused struct{ Why string }

func (e *Refused) Error() string { return e.Why }

// A Command is one unit that a program sends to a server.
type Command struct {
	Text   string          // one line for people: the command as sent, with the values of a prepared statement filled in
	Whole  func() string   // returns Text without a limit to its length; nil if Text is complete
	Effect schedule.Effect // the value Reads means that the command changes nothing and waits for no other client
	Gated  bool            // it waits at the gate; any other command passes once the commands before it are answered
	Raw    []byte          // bytes for the server
	Silent bool            // the server does not answer it
	Named  bool            // it asks for a named lock: GET_LOCK
	// Limit is how long the program lets the server wait: BLPOP key 1 waits for a second. It is 0 if the
	// program has not set a limit. The server's own time-out does not count. Endless means that the
	// program asks to wait without end.
	Limit time.Duration
	// Unlimited is Raw without a limit to its wait; nil if Raw has no limit or must keep it. Let sends
	// Unlimited instead of Raw, since the gate decides when the wait is over.
	Unlimited []byte
	Ends      bool // it ends the open transaction: COMMIT, ROLLBACK
	// Compound reports that the command consists of several statements or calls a routine in the server,
	// so another connection's command could come in between. Redis runs a script or transaction without
	// interruption, so those are not compound.
	Compound bool
	// Divided reports that another connection's write could come between the command's reads and writes.
	Divided bool
	// Overlaps reports that the explorer can run other commands between the command's reads and writes:
	// it uses Split, or the command's open transaction.
	Overlaps bool
	// Autocommits reports one statement that writes rows outside a transaction, so the server commits it
	// at once. Split needs it.
	Autocommits bool
	Alters      bool // it may change rows
	Within      bool // MySQL: a transaction may already be open
	Hidden      bool // it runs code of the database that its text does not show, such as a trigger
	// For PostgreSQL, InTransaction reports one statement in an open transaction, and OwnTransaction one
	// statement outside a transaction. If neither is certain, both are false.
	InTransaction, OwnTransaction bool
	Snapshots                     bool // PostgreSQL: the isolation level may be above READ COMMITTED
	// Came is when the kernel received the command. The goroutines of two connections may handle
	// commands in another order.
	Came   time.Time
	Push   bool   // not a command, but a message in Answer that the server pushed
	Answer Answer // set when the answer is complete

	split   split
	conn    *Conn
	let     chan struct{} // closed when the command may be sent; nil if it does not wait
	deliver chan struct{} // closed when the answer may be delivered; nil if it does not wait
	counted bool          // counted by Busy; guarded by Conn.mu
}

// Endless is the Limit of a command that asks to wait without end.
const Endless time.Duration = -1

// InFull returns Text without a limit to its length.
func (o *Command) InFull() string {
	if o.Whole != nil {
		return o.Whole()
	}
	return o.Text
}

// Conn returns the connection of the command.
func (o *Command) Conn() *Conn { return o.conn }

// Hold makes the command wait for Let or Release, and its answer for Deliver. Call it in Gate.Arrived or, for a
// pushed message, in Gate.Answered.
func (o *Command) Hold() { o.let, o.deliver = make(chan struct{}), make(chan struct{}) }

// Let sends the command to its server. If the command waits there, the gate must end that wait. Call
// either Let or Release, once.
func (o *Command) Let() {
	if o.Unlimited != nil {
		o.Raw = o.Unlimited
	}
	close(o.let)
}

// Release sends the command unchanged. If it waits in the server, its own time-out ends that wait.
func (o *Command) Release() { close(o.let) }

// Deliver passes the answer to the program, and counts it in Gate.Busy until the program has it. Call
// it once, after Gate.Answered.
func (o *Command) Deliver() {
	o.conn.mu.Lock()
	defer o.conn.mu.Unlock()
	if o.conn.ended == nil {
		o.counted = true
		o.conn.gate.Busy(1)
	}
	close(o.deliver)
}

// uncount lowers Gate.Busy once, after the method `turn` or Deliver has raised it.
func (o *Command) uncount() {
	o.conn.mu.Lock()
	defer o.conn.mu.Unlock()
	if o.counted {
		o.counted = false
		o.conn.gate.Busy(-1)
	}
}

// TimedOut turns the answer into that of a lock wait time-out, like Session.TimedOut.
func (o *Command) TimedOut() { o.Answer.Raw = o.conn.session.TimedOut(o, o.Answer.Raw) }

// Deadlocked turns the answer of an interrupted statement into the error of a deadlock's victim. It does
// nothing if the protocol has no such answer.
func (o *Command) Deadlocked() {
	if s, ok := o.conn.session.(interface {
		Deadlocked(current *Command, raw []byte) []byte
	}); ok {
		o.Answer.Raw = s.Deadlocked(o, o.Answer.Raw)
	}
}

// An Answer is the result of a command.
type Answer struct {
	Raw     []byte // bytes for the program
	Text    string // such as "stock=1", "1 changed", "nil", or "error 1213: Deadlock found when trying to get lock"
	Whole   string // Text before it was shortened; "": the same
	Changed bool   // it may have changed data that others can see, or a lock
	Failed  bool   // it was refused or found nothing: an error, nil, no row, 0
	Refused bool   // PostgreSQL: an error, or a ROLLBACK in answer to a COMMIT
	Open    bool   // a transaction is open after the command
	// Made lists the values that the server generated, such as the id of a new row. They differ in the
	// next run.
	Made []string
	// Rows are the first rows of the answer. Unlike Text, they are not cut. Unseen is the number of rows
	// after these.
	Rows   [][]witness.Cell
	Unseen int
}

// A Message is one message of the server.
type Message struct {
	Raw  []byte
	Push bool   // it answers no command: a message of a channel, a notification
	Text string // text of a push, for people
	Ends bool   // it ends the answer of the current command
}

// A Gate decides when commands and answers continue. The goroutines of connections call its methods.
type Gate interface {
	// Busy adds n to the count of sockets, commands and connections that are in use and do not wait at
	// the gate.
	Busy(n int64)
	// Entered reports that the program of c has connected and logs in. Joined reports that the login is
	// complete and the program has received all of it. Left reports that the program or the server has
	// hung up; err is io.EOF if the program did.
	Entered(c *Conn)
	Joined(c *Conn)
	Left(c *Conn, err error)
	// Arrived reports that o was read from its program. The command waits for Let if the gate calls
	// Hold.
	Arrived(o *Command)
	// First reports that o may be sent: the commands before it on its connection are answered.
	First(o *Command)
	// Passed reports that the server has answered o, which was not held. The program receives the answer after
	// this call, so its reaction comes later. If the connection ends first, only Left is called.
	Passed(o *Command)
	// Answered reports that the server has answered o, which waits for Deliver. Or the server has
	// pushed o, which waits if the gate calls Hold.
	Answered(o *Command)
	// Timed reports whether waits end by the clock, as they would without the gate. While it is true, a
	// connection keeps the time-outs that it has at its login or that its program sets.
	Timed() bool
}

// Open is a Gate that never holds a command.
type Open struct{}

// Busy and the other methods implement Gate.
func (Open) Busy(int64)        {}
func (Open) Entered(*Conn)     {}
func (Open) Joined(*Conn)      {}
func (Open) Left(*Conn, error) {}
func (Open) Arrived(*Command)  {}
func (Open) First(*Command)    {}
func (Open) Passed(*Command)   {}
func (Open) Answered(*Command) {}
func (Open) Timed() bool       { return false }

// A Socket is one end of a connection. The gate knows of all bytes that have arrived. Unread counts those that
// are still in the kernel. Gate.Busy counts the socket from before it reads until Rest.
type Socket struct {
	R *bufio.Reader // uses Read

	conn *net.TCPConn
	raw  rawConn
	gate Gate
	hot  bool      // counted by Busy; used only by the reading goroutine
	came time.Time // when the kernel received the bytes that were read last; used only by the reading goroutine

	written atomic.Int64 // number of bytes
}
