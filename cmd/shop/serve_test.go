package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestGracefulShutdown: after SIGTERM the built program accepts no new clients, lets the buy in
// flight finish, and exits with 0.
func TestGracefulShutdown(t *testing.T) {
	t.Parallel()
	e := enginetest.Local(t)
	serve := shoptest.Raced(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--wait", "1m"}, serveArgs(e)...)...)
	base := shoptest.Serve(t, serve)

	bought, letGo := webtest.HeldUpBuy(t, e.DB, base)
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	webtest.Eventually(t, "new connections are refused", func() bool {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	letGo()
	if r := <-bought; r.Status != http.StatusOK {
		t.Errorf("the buy in flight: %d %s, want a sale", r.Status, r.Body)
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
}

// TestPortTaken: one line, exit 2.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	base := startServe(t)
	code, _, stderr := shoptest.RunRaced(t, "serve", "--addr", strings.TrimPrefix(base, "http://"))
	if code != exitHarness || !strings.Contains(stderr, "--addr") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d, %q; want %d and one line that names --addr", code, stderr, exitHarness)
	}
}

// TestEvenNodes: an even number of Redlock nodes works, with a warning.
func TestEvenNodes(t *testing.T) {
	t.Parallel()
	e := enginetest.Embedded(t)
	code, _, stderr := shoptest.RunRaced(t, "rush", "--strategy", "redlock", "--stock", "5", "--buyers", "10",
		"--db", "sqlite://"+t.TempDir()+"/shop.db", "--redlock", strings.Join(e.URLs.Redlock[:4], ","))
	if code != 0 || !strings.Contains(stderr, "warning: --redlock has 4 nodes: a majority is 3") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d, %q; want a sound rush and one line of warning", code, stderr)
	}
}

// TestServeFlags: the shop applies the limits of --allowed-host and --max-conns.
func TestServeFlags(t *testing.T) {
	base := startServe(t, "--allowed-host", "shop.test", "--max-conns", "1")
	address := strings.TrimPrefix(base, "http://")
	deadline := time.Now().Add(patience)
	// The shop refuses a connection while it serves the other one. A client has its answer a moment before
	// that ends.
	var ask func(host string) (conn net.Conn, status string)
	ask = func(host string) (conn net.Conn, status string) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", host)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrUnexpectedEOF)) && time.Now().Before(deadline) {
			return ask(host)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		return conn, strings.TrimSpace(response.Status[:3])
	}
	idle, status := ask("shop.test")
	if status != "200" {
		t.Errorf("--allowed-host shop.test: %s", status)
	}
	if _, status := ask("another.test"); status != "421" {
		t.Errorf("a host that is not allowed: %s", status)
	}
	if _, err := idle.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("--max-conns 1 left an idle connection open beside a new one: %v", err)
	}
}
