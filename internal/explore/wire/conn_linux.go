package wire

import (
	"errors"
	"io"
	"sync"
)

// A Conn is a program's connection to a server, with the gate between them.
type Conn struct {
	Protocol string
	Buyer    int   // whose program it is; 0: all buyers' one
	ID       int64 // by which the server knows it, once it has logged in

	gate            Gate
	program, server *Socket
	session         Session
	writes          sync.Mutex // to the program

	mu      sync.Mutex
	more    sync.Cond  // of mu: queue has grown, or all has ended
	queue   []*Command // read and not answered, in order; the first alone may be sent
	sent    *Command   // the first, while it has no whole answer
	part    []byte     // of that
	whole   sync.Cond  // of mu: sent has its answer, or all has ended
	ended   error
	silence bool // nothing of it is delivered any more: Cut
}

// Serve speaks between a program and a server until either hangs up, and closes both.
// program must be Warm.
func Serve(gate Gate, p Protocol, buyer int, program, server *Socket) error {
	c := &Conn{Protocol: p.Name, Buyer: buyer, gate: gate, program: program, server: server}
	c.more.L, c.whole.L = &c.mu, &c.mu
	c.session = p.Open(program, server)
	defer program.end() // by this goroutine, which reads it
	id, err := c.session.Login()
	server.end()
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

// Cut closes both sides, and nothing is delivered any more.
func (c *Conn) Cut() {
	c.mu.Lock()
	c.silence = true
	c.mu.Unlock()
	c.close(io.ErrClosedPipe)
}

// close ends all; the first reason stays.
func (c *Conn) close(why error) {
	c.mu.Lock()
	if c.ended == nil {
		c.ended = why
	}
	c.more.Broadcast()
	c.whole.Broadcast()
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
		c.mu.Lock()
		first := len(c.queue) == 0
		if c.gate.Arrived(o) {
			// let and deliver were made by the gate, under its own lock
		} else if first {
			c.gate.Busy(1) // until its answer is handed over
		}
		c.queue = append(c.queue, o)
		if first {
			c.gate.First(o)
		}
		c.more.Broadcast()
		c.mu.Unlock()
	}
}

// send lets one command after the other through: a server answers them in their order,
// and the program's pipeline is of no use to it here.
func (c *Conn) send() {
	for {
		o := c.first()
		if o == nil {
			return
		}
		if o.let != nil {
			<-o.let
		}
		if err := c.exchange(o); err != nil {
			c.close(err)
			c.drain()
			return
		}
		if o.deliver != nil {
			<-o.deliver
		}
		if err := c.hand(o.Answer.Raw); err != nil {
			c.close(err)
			c.drain()
			return
		}
		c.mu.Lock()
		c.queue = c.queue[1:]
		if len(c.queue) > 0 {
			if c.queue[0].let == nil {
				c.gate.Busy(1)
			}
			c.gate.First(c.queue[0])
		}
		c.mu.Unlock()
		c.gate.Busy(-1) // of the command, or of its delivery
	}
}

// first waits for a command; nil: there will be none.
func (c *Conn) first() *Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) == 0 && c.ended == nil {
		c.more.Wait()
	}
	if c.ended != nil {
		c.drainLocked()
		return nil
	}
	return c.queue[0]
}

// drain gives back what the commands that will never be answered are counted for.
func (c *Conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drainLocked()
}

func (c *Conn) drainLocked() {
	if len(c.queue) > 0 && c.queue[0].let == nil {
		c.gate.Busy(-1)
	}
	c.queue = nil
}

// exchange sends a command and waits for its whole answer.
func (c *Conn) exchange(o *Command) error {
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return c.ended
	}
	if !o.Silent {
		c.sent, c.part = o, nil
	}
	c.mu.Unlock()
	if _, err := c.server.Write(o.Raw); err != nil {
		return err
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
		c.whole.Wait()
	}
	if c.sent == o {
		return c.ended
	}
	return nil
}

// receive takes in what the server sends.
func (c *Conn) receive() {
	defer c.server.end()
	for {
		c.server.Rest()
		if _, err := c.server.R.Peek(1); err != nil {
			c.close(errors.Join(errServer, err))
			return
		}
		c.mu.Lock()
		current := c.sent
		c.mu.Unlock()
		m, err := c.session.Receive(current)
		if err != nil {
			c.close(errors.Join(errServer, err))
			return
		}
		switch {
		case m.Push:
			c.push(m)
		case current == nil:
			c.close(errors.Join(errServer, errors.New("it has answered what nobody has asked")))
			return
		default:
			c.answered(current, m)
		}
	}
}

var errServer = errors.New("the server has hung up")

// answered adds to an answer. The gate hears of its end before the bytes are no longer
// counted.
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
	c.sent = nil
	c.whole.Broadcast()
	c.mu.Unlock()
}

// push hands a message on, when the gate allows.
func (c *Conn) push(m Message) {
	o := &Command{Text: m.Text, conn: c, Answer: Answer{Raw: m.Raw, Text: m.Text}}
	if !c.gate.Answered(o) {
		if err := c.hand(m.Raw); err != nil {
			c.close(err)
		}
		return
	}
	go func() {
		<-o.deliver
		if err := c.hand(m.Raw); err != nil {
			c.close(err)
		}
		c.gate.Busy(-1)
	}()
}

// hand gives bytes to the program.
func (c *Conn) hand(raw []byte) error {
	c.mu.Lock()
	silent := c.silence
	c.mu.Unlock()
	if silent || len(raw) == 0 {
		return nil
	}
	c.writes.Lock()
	defer c.writes.Unlock()
	_, err := c.program.Write(raw)
	return err
}
