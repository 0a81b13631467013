package wiretest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore/wire"
)

// A Tap relays to a server and records the bytes of each connection, in the order of the connections.
type Tap struct {
	Address string

	mu    sync.Mutex
	heard []*heard
}

// heard is one connection: the bytes to the server, and those to the program.
type heard struct {
	up, down bytes.Buffer
	ended    chan struct{}
}

// NewTap listens in front of server until the test ends.
func NewTap(t testing.TB, server string) *Tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	tap := &Tap{Address: l.Addr().String()}
	go func() {
		for {
			program, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			up, err := net.Dial("tcp", server) // dial here, so that connections come in their order
			if err != nil {
				_ = program.Close()
				return
			}
			h := &heard{ended: make(chan struct{})}
			tap.mu.Lock()
			tap.heard = append(tap.heard, h)
			tap.mu.Unlock()
			go h.relay(program, up)
		}
	}()
	return tap
}

// relay relays between the two sides until both have hung up.
func (h *heard) relay(program, server net.Conn) {
	defer close(h.ended)
	defer program.Close()
	defer server.Close()
	var both sync.WaitGroup
	both.Go(func() { h.copy(server, program, &h.up) })
	both.Go(func() { h.copy(program, server, &h.down) })
	both.Wait()
}

func (*heard) copy(to, from net.Conn, kept *bytes.Buffer) {
	_, _ = io.Copy(io.MultiWriter(kept, to), from)
	_ = to.(*net.TCPConn).CloseWrite()
}

// Said waits for the end of all connections. It returns the bytes of each: to the server, and to the
// program.
func (tap *Tap) Said(t testing.TB) (said [][2][]byte) {
	t.Helper()
	tap.mu.Lock()
	defer tap.mu.Unlock()
	for i, h := range tap.heard {
		select {
		case <-h.ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("connection %d has not ended", i)
		}
		said = append(said, [2][]byte{h.up.Bytes(), h.down.Bytes()})
	}
	return said
}

// Both are the taps on the two sides of a gate.
type Both struct{ Program, Server *Tap }

// Through puts a gate in front of server, and a tap on each side of it.
func Through(t testing.TB, gate wire.Gate, p wire.Protocol, server string) *Both {
	t.Helper()
	b := &Both{Server: NewTap(t, server)}
	b.Program = NewTap(t, Proxy(t, gate, p, b.Server.Address))
	return b
}

// Said waits for the end of all connections, and returns the bytes on each side of the gate. There must
// be equally many on each side, and at least one.
func (b *Both) Said(t testing.TB) (program, server [][2][]byte) {
	t.Helper()
	program, server = b.Program.Said(t), b.Server.Said(t)
	if len(program) == 0 || len(program) != len(server) {
		t.Fatalf("%d connections became %d", len(program), len(server))
	}
	return program, server
}

// Difference describes where bytes differ; "" if nowhere.
func Difference(got, want []byte) string {
	if bytes.Equal(got, want) {
		return ""
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	return fmt.Sprintf("byte %d of %d and %d: got %.60q, want %.60q", at, len(got), len(want), got[at:], want[at:])
}
