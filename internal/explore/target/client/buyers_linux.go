// Package client implements the buyers of one run: the HTTP clients of the program, each with one request. It knows
// which buyers are inside the program and which are answered.
package client

import (
	"context"
	"net"
	"slices"
	"sync"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Buyers are the buyers of one run. They know which buyer was released or answered last, and which one received a
// message and can continue. Only one goroutine may change them. Answers, however, arrive in goroutines of their own.
type Buyers struct {
	All     []*Buyer // by number, from 1
	Current int      // the buyer that was released or answered last; 0: any buyer may move next
	Handed  int      // number of answers and messages delivered to buyers so far

	gates *gates.Gates
	mu    sync.Mutex
}

// A Buyer is one HTTP client with one request.
type Buyer struct {
	ID       int
	Request  app.Request   // as in oversell.yaml
	Begun    bool          // one of its commands has arrived at a gate, where commands wait for the explorer
	Crashed  bool          // its program was killed
	Since    int           // the value of Buyers.Handed at the last delivery to this buyer
	Answered chan struct{} // closed when the answer has arrived, or the request has failed

	socket *wire.Socket
	alive  bool // the request was sent and is not answered yet; Buyers.mu guards this field and those below
	told   bool // reply and err are set
	reply  Reply
	err    error
}

// New returns buyers that have not sent their requests yet.
func New(g *gates.Gates, requests []app.Request) *Buyers {
	all := &Buyers{gates: g}
	for i, r := range requests {
		all.All = append(all.All, &Buyer{ID: i + 1, Request: r, Answered: make(chan struct{})})
	}
	return all
}

// Of returns the buyer with a number. For 0, it returns a buyer that never sends a request.
func (all *Buyers) Of(id int) *Buyer {
	if id < 1 || id > len(all.All) {
		return &Buyer{}
	}
	return all.All[id-1]
}

// MarkRunnable records a delivery to the buyer, which can continue now.
func (all *Buyers) MarkRunnable(id int) {
	all.Handed++
	all.Of(id).Since = all.Handed
}

// A Server is the instance of the program that serves a buyer.
type Server interface {
	Dial(ctx context.Context, address string) (*net.TCPConn, error)
	// Said describes the program for an error.
	Said() string
}

// Send sends the buyer's request r to its program. Until the buyer has read the answer, the gates count as busy.
func (all *Buyers) Send(ctx context.Context, b *Buyer, r app.Request, to Server) error {
	req, err := NewRequest(ctx, r)
	if err != nil {
		return err
	}
	address, err := HostPort(req.URL.String())
	if err != nil {
		return err
	}
	c, err := to.Dial(ctx, address)
	if err != nil {
		return naming.Void("a buyer does not reach the program", "buyer %d: %v%s", b.ID, err, to.Said())
	}
	socket, err := wire.NewSocket(all.gates, c)
	if err != nil {
		return err
	}
	all.mu.Lock()
	b.alive, b.socket = true, socket
	all.mu.Unlock()
	all.Current = b.ID
	all.MarkRunnable(b.ID)
	all.gates.Pulse.Hand(socket, b.ID)
	if err := req.Write(socket); err != nil {
		return naming.Void("a buyer cannot send its request", "buyer %d: %v", b.ID, err)
	}
	go func() {
		defer close(b.Answered)
		reply, err := ReadReply(socket.R, req)
		all.mu.Lock()
		b.reply, b.err = reply, err
		b.alive, b.told = false, true
		all.mu.Unlock()
		all.gates.Pulse.Hand(nil, 0)
		socket.Done()
		_ = socket.Close()
	}()
	return nil
}

// Answer returns the buyer's answer, or the error that came instead. While the buyer has neither, `told` is false.
func (all *Buyers) Answer(b *Buyer) (reply Reply, told bool, err error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	return b.reply, b.told, b.err
}

// Told reports whether the buyer has the program's answer.
func (all *Buyers) Told(b *Buyer) bool {
	_, told, _ := all.Answer(b)
	return told
}

// IsWaiting reports whether the buyer's request was sent and is not answered yet.
func (all *Buyers) IsWaiting(b *Buyer) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return b.alive
}

// Waiting returns the buyers that have sent a request and have no answer. If there are any, but no move is possible,
// the run is a dead end.
func (all *Buyers) Waiting() (who []int) {
	for _, b := range all.All {
		if all.IsWaiting(b) {
			who = append(who, b.ID)
		}
	}
	return who
}

// Inside returns the unanswered buyers that have no command at a gate or at a server.
func (all *Buyers) Inside(now gates.Commands) []int {
	sent := slices.Concat(now.Held, now.Flying, now.Uncommitted, now.Answered)
	return slices.DeleteFunc(all.Waiting(), func(id int) bool {
		return slices.ContainsFunc(sent, func(o *gates.Op) bool { return o.Buyer == id })
	})
}

// HaveRead reports whether the buyers have read all answers that were sent. The function `sent` reports whether the
// buyer's program has sent bytes that have not yet arrived at the socket.
func (all *Buyers) HaveRead(sent func(buyer int, s *wire.Socket) bool) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return !slices.ContainsFunc(all.All, func(b *Buyer) bool {
		return b.alive && b.socket != nil && (sent(b.ID, b.socket) || b.socket.Unread() > 0)
	})
}

// Crash records that the buyer's program was killed.
func (all *Buyers) Crash(b *Buyer) {
	all.mu.Lock()
	defer all.mu.Unlock()
	b.Crashed, b.alive = true, false
	all.gates.Trouble.Kill(b.ID)
}

// HangUp closes the connections of the buyers.
func (all *Buyers) HangUp(buyers ...*Buyer) {
	for _, b := range buyers {
		if b.socket != nil {
			_ = b.socket.Close()
		}
	}
}
