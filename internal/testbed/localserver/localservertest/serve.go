package localservertest

import (
	"net"
	"testing"

	"github.com/oversell/oversell/internal/require"
)

// Serve listens on a free port until the test ends and returns host:port. The function `handle` serves each
// connection in its own goroutine; then the connection is closed. So a test can imitate a server that misbehaves.
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
