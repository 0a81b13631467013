// Package wiretest puts a gate that is never shut in front of a real server: what a
// client and the server say to each other through it must be what they say without.
package wiretest

import (
	"net"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/explore/wire"
)

// A Recorder is a Gate that is never shut and notes each command, as Arrived has it.
type Recorder struct {
	wire.Open
	mu       sync.Mutex
	commands []*wire.Command
}

// Arrived is wire.Gate's.
func (r *Recorder) Arrived(o *wire.Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commands = append(r.commands, o)
}

// Commands are those that have come, in their order. Their answers may be under way.
func (r *Recorder) Commands() []*wire.Command {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*wire.Command(nil), r.commands...)
}

// Proxy listens on a free port of loopback in front of server, until the test ends, and
// returns where.
func Proxy(t testing.TB, gate wire.Gate, p wire.Protocol, server string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := wire.Listen(gate, p, 1, l.(*net.TCPListener), server, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr()
}
