package localservertest

import (
	"net"
	"testing"
)

// Serve listens on a free port until the test ends, has each connection served by handle in
// a goroutine of its own, and closes it afterwards: a server that misbehaves as no real one
// does on demand. It returns host:port.
func Serve(t testing.TB, handle func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	return l.Addr().String()
}
