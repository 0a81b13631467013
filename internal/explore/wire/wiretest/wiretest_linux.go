// Package wiretest puts an open gate in front of a real server. Client and server must exchange the
// same bytes through it as without it.
package wiretest

import (
	"net"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/explore/wire"
)

// A Recorder is an open Gate that records each command as Arrived receives it.
type Recorder struct {
	wire.Open
	mu       sync.Mutex
	commands []*wire.Command
}

// Arrived implements wire.Gate.
func (r *Recorder) Arrived(o *wire.Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commands = append(r.commands, o)
}

// Commands returns the commands so far, in order. Their answers may be on the way.
func (r *Recorder) Commands() []*wire.Command {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*wire.Command(nil), r.commands...)
}

// Proxy listens on a free loopback port in front of server until the test ends. It returns the address.
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
