package fault

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestDelayAnswers: an answer comes no sooner than the delay, and at the end nobody listens.
func TestDelayAnswers(t *testing.T) {
	t.Parallel()
	echo := localservertest.Serve(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	const by = 20 * time.Millisecond
	addr, end, err := DelayAnswers(echo, by)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 3 {
		start := time.Now()
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < by {
			t.Errorf("an answer after %s, want %s or more", took, by)
		}
	}
	end()
	if conn, err := net.Dial("tcp", addr); err == nil {
		_ = conn.Close()
		t.Error("the proxy listens after its end")
	}
}
