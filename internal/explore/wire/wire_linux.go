// Package wire has gates on the network: a program in any language connects to what it
// takes for its database or its Redis, and each command that it sends stops there until
// the scheduler lets it go.
//
//	program -> Conn -> Session.Next -> Gate.Arrived ... let go -> server
//	program <- Conn <- delivered ... Gate.Answered <- Session.Receive <- server
//
// A protocol is one folder below this one, and says how its commands and its answers are
// framed and what they mean. What waits, and when it goes on, is the Gate's.
package wire

import (
	"bufio"
	"net"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Protocol is one that programs speak to their servers.
type Protocol struct {
	Name string // "mysql", "postgres", "redis": in the file, and Choice.Touches
	// Open begins to speak with a program that has connected, and with the server.
	Open func(program, server *Socket) Session
}

// A Session is one connection as its protocol sees it. Login comes first. Then Next and
// Receive are called by two goroutines, so what both know of needs a lock. None is called
// again after it has failed.
//
// A session that must refuse its program (TLS, a method that cannot be relayed) tells it
// why in the protocol's own words, and fails with a *Refused.
type Session interface {
	// Login relays the greeting and the authentication, and strikes from them what cannot
	// be gated. It returns the number by which the server knows the connection: MySQL's
	// thread id, PostgreSQL's process id, Redis' client id; 0 where it does not say.
	Login() (id int64, err error)

	// Next reads from the program what it sends next as one thing. It blocks in
	// Socket.Read alone. The error is io.EOF where the program has hung up.
	Next() (*Command, error)

	// Receive reads one message from the server; the first of its bytes is there already.
	// current is the command that was sent and has no whole answer yet; nil: there is none.
	// With the message that ends the answer it fills current.Answer in.
	Receive(current *Command) (Message, error)

	// TimedOut turns an answer that says that current was interrupted, as the schedule
	// wanted, into the one of a lock wait that has lasted too long, and changes
	// current.Answer. It returns raw where it is no such answer.
	TimedOut(current *Command, raw []byte) []byte
}

// A Refused is a program that cannot be explored as it is, and says in one line what to do.
type Refused struct{ Why string }

func (e *Refused) Error() string { return e.Why }

// A Command is what a program sends to a server as one thing.
type Command struct {
	Text   string          // for people, in one line, as it was sent, with the values of a prepared one in their places
	Effect schedule.Effect // Reads only where it changes nothing and waits for no other client
	Gated  bool            // it waits to be let go; others pass at once, in their turn
	Raw    []byte          // for the server
	Silent bool            // the server does not answer it
	Named  bool            // it asks for a named lock: GET_LOCK
	// Limit is how long the program itself lets the server keep it waiting: BLPOP key 1 for a
	// second. 0: it has not said; the server's own time-out, if there is one, is none of it.
	// Endless: it has said that the wait is to have no end.
	Limit time.Duration
	// Unlimited is Raw with no limit to its wait; nil where Raw has none, or cannot be without.
	// Let sends it in the place of Raw, since the gate decides when the wait is over.
	Unlimited []byte
	Ends      bool // it ends the open transaction: COMMIT, ROLLBACK
	// Compound: it is several statements, or a routine in the server, and another connection's
	// command could come in between. Redis lets none in between: what it runs as one is none.
	Compound bool
	// Divided: another connection's write could come between its reads and its writes.
	Divided bool
	Alters  bool   // it may change rows
	Push    bool   // no command: the server pushed its answer
	Answer  Answer // once there is one

	conn    *Conn
	let     chan struct{} // closed when it may be sent; nil where it passes
	deliver chan struct{} // closed when its answer may be handed over; nil where it passes
	counted bool          // Conn.mu: by Busy
}

// Endless is the Limit of a command that asks for a wait without end.
const Endless time.Duration = -1

// Conn is where the command came in.
func (o *Command) Conn() *Conn { return o.conn }

// Hold has the command wait for Let or Release, and its answer for Deliver. It is for
// Gate.Arrived, and of a push for Gate.Answered.
func (o *Command) Hold() { o.let, o.deliver = make(chan struct{}), make(chan struct{}) }

// Let sends the command to its server. Where it waits there, the gate sees to the end of that.
// Let or Release is called once.
func (o *Command) Let() {
	if o.Unlimited != nil {
		o.Raw = o.Unlimited
	}
	close(o.let)
}

// Release sends the command as it came, so that the server ends its wait.
func (o *Command) Release() { close(o.let) }

// Deliver hands the answer over to the program, and counts it by Gate.Busy until the program
// has it. It is called once, after Gate.Answered.
func (o *Command) Deliver() {
	o.conn.mu.Lock()
	defer o.conn.mu.Unlock()
	if o.conn.ended == nil {
		o.counted = true
		o.conn.gate.Busy(1)
	}
	close(o.deliver)
}

// uncount gives back what turn or Deliver has counted, once.
func (o *Command) uncount() {
	o.conn.mu.Lock()
	defer o.conn.mu.Unlock()
	if o.counted {
		o.counted = false
		o.conn.gate.Busy(-1)
	}
}

// TimedOut has the answer be the one of a lock wait that lasted too long, see
// Session.TimedOut.
func (o *Command) TimedOut() { o.Answer.Raw = o.conn.session.TimedOut(o, o.Answer.Raw) }

// Deadlocked has the answer of a statement that was interrupted be the one of a deadlock's
// victim, where the protocol knows how to.
func (o *Command) Deadlocked() {
	if s, ok := o.conn.session.(interface {
		Deadlocked(current *Command, raw []byte) []byte
	}); ok {
		o.Answer.Raw = s.Deadlocked(o, o.Answer.Raw)
	}
}

// An Answer is what a command came to.
type Answer struct {
	Raw     []byte // for the program
	Text    string // for people: "stock=1", "1 changed", "nil", "error 1213: Deadlock found when trying to get lock"
	Changed bool   // it has changed what others can see or wait for, or may have
	Failed  bool   // it was refused, or has found nothing: an error, nil, no row, 0
	// Made are the values that the server made up, such as the id of a new row. They are
	// others in the next run.
	Made []string
}

// A Message is what a server has sent as one thing.
type Message struct {
	Raw  []byte
	Push bool   // it answers nothing: a message of a channel, a notification
	Text string // of a push, for people
	Ends bool   // it ends the answer of the current command
}

// A Gate decides when commands and answers go on. Its methods are called by the goroutines
// of connections.
type Gate interface {
	// Busy counts what neither rests nor waits at the gate, plus or minus.
	Busy(n int64)
	// Entered: the program of c has connected, and logs in. Joined: it has, and the last that
	// was written to it says so. Left: it has gone, or the server has; err is io.EOF where the
	// program has hung up.
	Entered(c *Conn)
	Joined(c *Conn)
	Left(c *Conn, err error)
	// Arrived: o was read from its program. It waits for Let if the gate has called Hold.
	Arrived(o *Command)
	// First: o may be sent, the commands before it on its connection have been answered.
	First(o *Command)
	// Passed: the server has answered o, which was not held, and the program is about to get
	// that: what it does by it comes later. Of a connection that goes there is Left alone.
	Passed(o *Command)
	// Answered: the server has answered o, which waits for Deliver. Or it has pushed o, which
	// waits if the gate calls Hold.
	Answered(o *Command)
	// Timed: waits end by the clock, as they do without the gate. Time-outs that a connection
	// has at its login, or is given by its program, are left as they are while it is true.
	Timed() bool
}

// Open is a Gate that is never shut.
type Open struct{}

// Busy and the others are Gate's.
func (Open) Busy(int64)        {}
func (Open) Entered(*Conn)     {}
func (Open) Joined(*Conn)      {}
func (Open) Left(*Conn, error) {}
func (Open) Arrived(*Command)  {}
func (Open) First(*Command)    {}
func (Open) Passed(*Command)   {}
func (Open) Answered(*Command) {}
func (Open) Timed() bool       { return false }

// A Socket is one end of a connection. Bytes that have come to it never go unseen: they
// are in the kernel's queue (Unread), or counted by Gate.Busy from before they are read
// until Rest says that what they mean is known to the gate.
type Socket struct {
	R *bufio.Reader // of Read

	conn *net.TCPConn
	raw  rawConn
	gate Gate
	hot  bool // counted by Busy; of the goroutine that reads

	written atomic.Int64 // in bytes
}
