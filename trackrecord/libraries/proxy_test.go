package libraries

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A proxy relays between a client and a server, and can lose answers: the server has executed the
// request, but the client does not learn of it.
type proxy struct {
	addr   string
	left   atomic.Int64  // answers that still pass; negative: no limit
	losing chan struct{} // receives a value when an answer is lost

	listener net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{addr: l.Addr().String(), losing: make(chan struct{}, 1), listener: l}
	p.left.Store(-1)
	t.Cleanup(p.end)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, upstream)
			p.mu.Unlock()
			go func() { _, _ = io.Copy(upstream, client) }()
			go p.answers(client, upstream)
		}
	}()
	return p
}

func (p *proxy) answers(client, upstream net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := upstream.Read(buf)
		if err != nil {
			_ = client.Close()
			return
		}
		if p.left.Load() < 0 || p.left.Add(-1) >= 0 {
			_, _ = client.Write(buf[:n])
		} else {
			p.left.Store(0)
			select {
			case p.losing <- struct{}{}:
			default:
			}
		}
	}
}

// lose lets the next n answers pass, and drops all later ones.
func (p *proxy) lose(n int64) { p.left.Store(n) }

func (p *proxy) lost(t *testing.T) {
	t.Helper()
	select {
	case <-p.losing:
	case <-time.After(30 * time.Second):
		t.Fatal("no answer was lost: the test shows nothing")
	}
}

// cut closes all connections. New ones work normally.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left.Store(-1)
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) end() {
	_ = p.listener.Close()
	p.cut()
}
