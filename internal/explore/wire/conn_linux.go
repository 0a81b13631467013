package wire

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// A Conn is a program's connection to a server, with the gate in between. It tracks the order of the
// commands and which of them are answered. The session, which knows the protocol, interprets them. The
// gate decides when they continue.
//
// Three goroutines work for a Conn. One reads from the program, and one reads from the server. The
// third sends each command after the previous one is answered, even if the program pipelines. A
// goroutine that holds mu calls no method of the gate except Busy.
type Conn struct {
	Protocol string
	Buyer    int   // the buyer that the program serves; 0: it serves all buyers
	ID       int64 // the server's number for the connection; set by the login

	User, Database string // set by the login; "" if unknown

	gate            Gate
	program, server *Socket
	session         Session
	writes          sync.Mutex // guards writes to the program

	mu    sync.Mutex
	moved sync.Cond  // uses mu; signals a change of a field below
	queue []*Command // commands that were read and are not answered, in order; only the first may be sent
	first *Command   // queue[0], once Gate.First has returned
	sent  *Command   // queue[0], from sending it until the server's answer is complete
	held  *Command   // queue[0], from its complete answer until the program has received that answer
	last  error      // why the server hung up before the program received the answer to held
	part  []byte     // an incomplete answer; used only by the goroutine that reads from the server
	ended error
	mute  bool          // set by Cut: the program receives nothing more
	gone  chan struct{} // closed when ended is set
}

// Serve relays between a program and a server until either hangs up, and then closes both sockets. The
// caller must call program.Warm first, so that Gate.Busy counts the socket.
func Serve(gate Gate, p Protocol, buyer int, program, server *Socket) error {
	c := &Conn{Protocol: p.Name, Buyer: buyer, gate: gate, program: program, server: server, gone: make(chan struct{})}
	c.moved.L = &c.mu
	c.session = p.Open(program, server)
	defer program.Done()
	gate.Entered(c)
	id, err := c.session.Login()
	server.Done()
	if err != nil {
		c.close(err)
		gate.Left(c, err)
		return err
	}
	c.ID = id
	if s, tells := c.session.(interface {
		Account() (user, database string)
	}); tells {
		c.User, c.Database = s.Account()
	}
	gate.Joined(c)
	var others sync.WaitGroup
	others.Go(c.receive)
	others.Go(c.send)
	c.close(c.read())
	others.Wait()
	gate.Left(c, c.ended)
	return c.ended
}

// Program returns the socket to the program.
func (c *Conn) Program() *Socket { return c.program }

// Server returns the socket to the server.
func (c *Conn) Server() *Socket { return c.server }

// Cut closes both sides. The program receives nothing more.
func (c *Conn) Cut() {
	c.mu.Lock()
	c.mute = true
	c.mu.Unlock()
	c.close(io.ErrClosedPipe)
}

// close closes both sides. It keeps the error of the first call.
func (c *Conn) close(why error) {
	c.mu.Lock()
	if c.ended == nil {
		c.ended = why
		close(c.gone)
	}
	c.moved.Broadcast()
	c.mu.Unlock()
	_ = c.program.Close()
	_ = c.server.Close()
}

func (c *Conn) read() error {
	for {
		c.program.Rest()
		o, err := c.session.Next()
		if err != nil {
			return err
		}
		o.conn, o.Came = c, c.program.came
		c.gate.Arrived(o)
		c.mu.Lock()
		c.queue = append(c.queue, o)
		first := len(c.queue) == 1
		c.mu.Unlock()
		if first {
			c.turn(o)
		}
	}
}

// turn permits sending o, the first command of the queue. If o does not wait at the gate, Busy counts
// it until the program has the answer.
func (c *Conn) turn(o *Command) {
	c.mu.Lock()
	live := c.ended == nil
	if live && o.let == nil {
		o.counted = true
		c.gate.Busy(1)
	}
	c.mu.Unlock()
	if live {
		c.gate.First(o)
	}
	c.mu.Lock()
	c.first = o
	c.moved.Broadcast()
	c.mu.Unlock()
}

func (c *Conn) send() {
	for o := c.next(); o != nil; o = c.next() {
		if err := c.pass(o); err != nil {
			c.close(err)
		}
		c.mu.Lock()
		c.held = nil
		c.moved.Broadcast()
		last := c.last
		c.mu.Unlock()
		if last != nil {
			c.close(last) // before uncount, so that Busy never drops to 0 in between
		}
		c.mu.Lock()
		c.queue = c.queue[1:]
		var following *Command
		if len(c.queue) > 0 {
			following = c.queue[0]
		}
		c.mu.Unlock()
		if following != nil {
			c.turn(following)
		}
		o.uncount()
	}
	c.mu.Lock()
	rest := c.queue
	c.mu.Unlock()
	for _, o := range rest {
		o.uncount()
	}
}

// next waits for a command that may be sent. It returns nil after the connection has ended.
func (c *Conn) next() *Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (len(c.queue) == 0 || c.queue[0] != c.first) && c.ended == nil {
		c.moved.Wait()
	}
	if c.ended != nil {
		return nil
	}
	return c.queue[0]
}

// pass sends a command when the gate allows it. Later, when the gate allows that, pass delivers the answer.
func (c *Conn) pass(o *Command) error {
	if err := await(o.let, c.gone); err != nil {
		return err
	}
	raw := o.Raw
	if o.split.step == Begins {
		raw = append(c.session.(Splitter).Opens(o), raw...)
	}
	if err := c.exchange(o, raw); err != nil {
		return err
	}
	if err := c.finish(o); err != nil {
		return err
	}
	if err := await(o.deliver, c.gone); err != nil {
		return err
	}
	if o.let == nil {
		c.gate.Passed(o)
	}
	return c.hand(o.Answer.Raw)
}

// await waits until `sign` or `gone` is closed. It returns at once if `sign` is nil.
func await(sign, gone chan struct{}) error {
	if sign == nil {
		return nil
	}
	select {
	case <-sign:
		return nil
	case <-gone:
		return io.ErrClosedPipe
	}
}

// exchange sends the bytes of a command, or of one step of a split command, and waits for the complete answer.
func (c *Conn) exchange(o *Command, raw []byte) error {
	c.mu.Lock()
	if !o.Silent {
		c.sent, c.part = o, nil
	}
	c.mu.Unlock()
	if _, err := c.server.Write(raw); err != nil {
		return fmt.Errorf("%w: %w", errServer, err)
	}
	if o.Silent {
		if o.let != nil {
			c.gate.Answered(o)
		}
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.sent == o && c.ended == nil {
		c.moved.Wait()
	}
	if c.sent == o {
		return c.ended
	}
	return nil
}

func (c *Conn) receive() {
	defer c.server.Done()
	for {
		c.server.Rest()
		if _, err := c.server.R.Peek(1); err != nil {
			c.hungUp(fmt.Errorf("%w: %w", errServer, err))
			return
		}
		c.mu.Lock()
		current := c.sent
		c.mu.Unlock()
		m, err := c.session.Receive(current)
		switch {
		case err != nil:
			c.close(fmt.Errorf("%w: %w", errServer, err))
			return
		case m.Push:
			c.push(m)
		case current == nil:
			c.close(fmt.Errorf("%w: it has sent an answer without a command", errServer))
			return
		default:
			c.answered(current, m)
		}
	}
}

var errServer = errors.New("the server has hung up")

// answered adds a message to an answer. It reports a complete answer to the gate while Busy still
// counts the server's socket.
func (c *Conn) answered(o *Command, m Message) {
	c.part = append(c.part, m.Raw...)
	if !m.Ends {
		return
	}
	if o.split.step != Commits {
		o.Answer.Raw = c.part
	}
	complete := o.split.step == Whole || o.split.step == Commits
	if o.let != nil && complete {
		c.gate.Answered(o)
	}
	c.mu.Lock()
	c.sent = nil
	if complete {
		c.held = o
	}
	c.moved.Broadcast()
	c.mu.Unlock()
}

// hungUp closes the connection after the program has received the last answer: the answer to QUIT, or
// an error after which the server hangs up.
func (c *Conn) hungUp(why error) {
	c.mu.Lock()
	wait := c.held != nil && c.ended == nil
	if wait {
		c.last = why
	}
	c.mu.Unlock()
	if !wait {
		c.close(why)
	}
}

// push delivers a message that answers no command, when the gate allows it. If the server has sent an
// answer before, such as the confirmation of a SUBSCRIBE, the program receives that answer first.
func (c *Conn) push(m Message) {
	c.mu.Lock()
	for c.held != nil && c.held.deliver == nil && c.ended == nil {
		c.moved.Wait()
	}
	c.mu.Unlock()
	o := &Command{Text: m.Text, Push: true, conn: c, Answer: Answer{Raw: m.Raw, Text: m.Text}}
	c.gate.Answered(o)
	if o.deliver == nil {
		if err := c.hand(m.Raw); err != nil {
			c.close(err)
		}
		return
	}
	go func() {
		err := await(o.deliver, c.gone)
		if err == nil {
			err = c.hand(m.Raw)
		}
		if err != nil {
			c.close(err)
		}
		o.uncount()
	}()
}

func (c *Conn) hand(raw []byte) error {
	c.mu.Lock()
	mute := c.mute
	c.mu.Unlock()
	if mute || len(raw) == 0 {
		return nil
	}
	c.writes.Lock()
	defer c.writes.Unlock()
	_, err := c.program.Write(raw)
	return err
}
