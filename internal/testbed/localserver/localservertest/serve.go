package localservertest

import (
	"net"
	"testing"

	"github.com/oversell/oversell/internal/require"
)

// Serve listens on a free port until the test ends and returns host:port. Each connection is served by handle
// in its own goroutine and then closed. It stands in for a server that misbehaves in a given way.
func Serve(t testing.TB, handle func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	return l.Addr().String()
}
