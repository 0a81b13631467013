package testbed

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// A CommitProxy is a TCP proxy in front of the servers of a database. While it is armed, it lets a
// COMMIT take place, drops the server's answer and closes the connection. The client then cannot
// know whether the transaction was committed. It passes everything else through.
//
// It is safe for concurrent use.
type CommitProxy struct {
	Servers []string // host:port
	Addrs   []string // addresses for the clients, in the order of Servers

	armed, dropped atomic.Int64

	mu     sync.Mutex
	open   map[io.Closer]bool // connections and listeners
	closed bool
}

// NewCommitProxy starts a proxy in front of servers, each host:port. The caller must call Close, even
// after an error.
func NewCommitProxy(servers ...string) (*CommitProxy, error) {
	p := &CommitProxy{Servers: servers, open: map[io.Closer]bool{}}
	for _, server := range servers {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return p, err
		}
		p.keep(listener)
		p.Addrs = append(p.Addrs, listener.Addr().String())
		go p.serve(listener, server)
	}
	return p, nil
}

// Arm makes the proxy drop the answers of the next n COMMITs that take place; 0 disarms it.
func (p *CommitProxy) Arm(n int64) { p.armed.Store(n) }

// Dropped returns how many answers the proxy has dropped.
func (p *CommitProxy) Dropped() int64 { return p.dropped.Load() }

// Close closes all connections and refuses new ones.
func (p *CommitProxy) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.open {
		_ = c.Close() // the other end may have closed it
	}
	return nil
}

func (p *CommitProxy) serve(listener net.Listener, server string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go p.pass(client, server)
	}
}

// pass connects a client to the server until one of them ends the connection.
func (p *CommitProxy) pass(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.keep(client, server) {
		return
	}
	defer p.forget(client, server)
	var asked atomic.Pointer[commitFrames] // the COMMIT that has no answer yet
	go func() {
		defer server.Close()
		defer client.Close()
		copyFrames(server, client, func(request []byte) bool {
			asked.Store(commitIn(request))
			return true
		})
	}()
	copyFrames(client, server, func(answer []byte) bool {
		commit := asked.Swap(nil)
		return commit == nil || !commit.isDone(answer) || !p.take()
	})
}

// take reports whether the answer to a COMMIT must be dropped, and counts the dropped answer.
func (p *CommitProxy) take() bool {
	for n := p.armed.Load(); n > 0; n = p.armed.Load() {
		if p.armed.CompareAndSwap(n, n-1) {
			p.dropped.Add(1)
			return true
		}
	}
	return false
}

// keep registers connections or listeners, so that Close closes them. It reports whether the proxy is still open.
func (p *CommitProxy) keep(all ...io.Closer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range all {
		p.open[c] = true
	}
	return !p.closed
}

func (p *CommitProxy) forget(all ...io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range all {
		delete(p.open, c)
	}
}

// copyFrames copies each read from one end to the other, until the function `pass` returns false or an end closes.
func copyFrames(to io.Writer, from io.Reader, pass func(frame []byte) bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !pass(buffer[:n]) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// commitFrames describes a COMMIT and its answer in the protocol of a database. A driver sends
// COMMIT alone and waits for the answer, so each arrives in one read.
type commitFrames struct {
	request []byte
	isDone  func(answer []byte) bool
}

// commitIn returns the frames of the protocol in which request is a COMMIT, or nil.
func commitIn(request []byte) *commitFrames {
	for _, commit := range []*commitFrames{
		{ // MySQL: COM_QUERY, and an OK packet
			request: []byte("\x07\x00\x00\x00\x03COMMIT"),
			isDone:  func(answer []byte) bool { return len(answer) > 4 && answer[4] == 0 },
		},
		{ // PostgreSQL: Query, and CommandComplete
			request: []byte("Q\x00\x00\x00\x0bcommit\x00"),
			isDone:  func(answer []byte) bool { return bytes.HasPrefix(answer, []byte("C\x00\x00\x00\x0bCOMMIT\x00")) },
		},
	} {
		if bytes.Equal(request, commit.request) {
			return commit
		}
	}
	return nil
}
