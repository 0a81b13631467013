package wire

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// A Conn is a program's connection to a server, with the gate between them. It knows the
// order of the commands and what has been answered. Their meaning is the session's, and the
// gate decides when they go on.
//
// Three goroutines work for it: one reads from the program, one from the server, and one
// sends one command after the other, in their order: a program's pipeline is of no use to it
// here. None of them calls the gate while it holds mu, except for Busy.
type Conn struct {
	Protocol string
	Buyer    int   // whose program it is; 0: all buyers' one
	ID       int64 // by which the server knows it, once it has logged in

	gate            Gate
	program, server *Socket
	session         Session
	writes          sync.Mutex // to the program

	mu    sync.Mutex
	moved sync.Cond  // of mu: anything below has changed
	queue []*Command // read and not answered, in order; the first alone may be sent
	first *Command   // the first, once the gate knows that it is
	sent  *Command   // the first, while it has no whole answer
	held  *Command   // the first, while it has one that the program has not
	last  error      // why the server has hung up while an answer was held
	part  []byte     // of that; of the goroutine that reads from the server
	ended error
	mute  bool          // nothing of it is delivered any more: Cut
	gone  chan struct{} // closed with ended
}

// Serve speaks between a program and a server until either hangs up, and closes both.
// program must be Warm.
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
	gate.Joined(c)
	var others sync.WaitGroup
	others.Go(c.receive)
	others.Go(c.send)
	c.close(c.read())
	others.Wait()
	gate.Left(c, c.ended)
	return c.ended
}

// Program is the socket to the program.
func (c *Conn) Program() *Socket { return c.program }

// Server is the socket to the server.
func (c *Conn) Server() *Socket { return c.server }

// Cut closes both sides, and nothing is delivered any more.
func (c *Conn) Cut() {
	c.mu.Lock()
	c.mute = true
	c.mu.Unlock()
	c.close(io.ErrClosedPipe)
}

// close ends all; the first reason stays.
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

// read takes in what the program sends.
func (c *Conn) read() error {
	for {
		c.program.Rest()
		o, err := c.session.Next()
		if err != nil {
			return err
		}
		o.conn = c
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

// turn: o may be sent from now on. One that passes is counted until its answer is handed
// over, and so before it can be.
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

// send lets one command after the other through.
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
			c.close(last) // while o is counted
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

// next waits for a command whose turn it is; nil: there will be none.
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

// pass sends a command and hands its answer over, when the gate says so.
func (c *Conn) pass(o *Command) error {
	if err := await(o.let, c.gone); err != nil {
		return err
	}
	if err := c.exchange(o); err != nil {
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

// await returns when a channel is closed, at once where there is none. gone ends it.
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

// exchange sends a command and waits for its whole answer.
func (c *Conn) exchange(o *Command) error {
	c.mu.Lock()
	if !o.Silent {
		c.sent, c.part = o, nil
	}
	c.mu.Unlock()
	if _, err := c.server.Write(o.Raw); err != nil {
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

// receive takes in what the server sends.
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
			c.close(fmt.Errorf("%w: it has answered what nobody has asked", errServer))
			return
		default:
			c.answered(current, m)
		}
	}
}

var errServer = errors.New("the server has hung up")

// answered adds to an answer. The gate hears of its end while the bytes are still counted.
func (c *Conn) answered(o *Command, m Message) {
	c.part = append(c.part, m.Raw...)
	if !m.Ends {
		return
	}
	o.Answer.Raw = c.part
	if o.let != nil {
		c.gate.Answered(o)
	}
	c.mu.Lock()
	c.sent, c.held = nil, o
	c.moved.Broadcast()
	c.mu.Unlock()
}

// hungUp ends all, but not before the program has the answer that came last: to QUIT, or an
// error after which the server hangs up.
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

// push hands a message on, when the gate allows. It waits until an answer that passes the gate
// is with the program, since what comes now came after it: a message after the confirmation of
// its SUBSCRIBE.
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

// hand gives bytes to the program.
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
