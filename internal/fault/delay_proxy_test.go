package fault

import (
	"io"
	"net"
	"testing"
	"time"
)

// TestDelayAnswers: an answer comes no sooner than the delay, and at the end nobody listens.
func TestDelayAnswers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); _, _ = io.Copy(conn, conn) }()
		}
	}()
	const by = 20 * time.Millisecond
	addr, end, err := DelayAnswers(l.Addr().String(), by)
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
