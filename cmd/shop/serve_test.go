package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/web/problem"
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
	require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
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

// TestPortTaken: a port in use causes one line of error and exit 2.
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
	// The shop refuses a connection while it serves the other one. A client gets its answer a moment
	// before the shop has finished with its connection.
	var ask func(host string) (conn net.Conn, status string)
	ask = func(host string) (conn net.Conn, status string) {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetDeadline(deadline))
		_, _ = fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", host)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrUnexpectedEOF)) && time.Now().Before(deadline) {
			return ask(host)
		}
		require.NoError(t, err)
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

// fates are the Idempotency-Keys of all orders, by answer.
type fates struct {
	mu                        sync.Mutex
	sold, refused, unanswered []string
}

// buyUntilRefused buys over a connection, opens a new connection whenever the old one ends, and stops
// when the shop accepts no connection.
func (f *fates) buyUntilRefused(t *testing.T, addr, path, name string, sold *atomic.Int64) {
	var conn net.Conn
	var answers *bufio.Reader
	for n := 0; ; n++ {
		if conn == nil {
			var err error
			if conn, err = net.Dial("tcp", addr); err != nil {
				if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ECONNRESET) {
					t.Error(err)
				}
				return
			}
			answers = bufio.NewReader(conn)
		}
		key := fmt.Sprintf("%s-%d", name, n)
		status, last, err := buyRaw(conn, answers, path, key)
		f.mu.Lock()
		switch {
		case err != nil:
			if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("%s: %v, want an answer, or a connection that has ended", key, err)
			}
			f.unanswered = append(f.unanswered, key)
		case status == http.StatusOK:
			f.sold = append(f.sold, key)
			sold.Add(1)
		case status == http.StatusServiceUnavailable:
			f.refused = append(f.refused, key)
		default:
			t.Errorf("%s: %d", key, status)
		}
		f.mu.Unlock()
		if err != nil || last {
			_ = conn.Close()
			conn = nil
		}
	}
}

// buyRaw sends an order once; http.Client would send it again if no answer came. The request's id
// is the key. The error is io.EOF, ECONNRESET or EPIPE if the connection ended before an answer
// began.
func buyRaw(conn net.Conn, answers *bufio.Reader, path, key string) (status int, last bool, _ error) {
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "POST %[1]s HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: %[2]s\r\n%[3]s: %[2]s\r\nContent-Length: 0\r\n\r\n", path, key, problem.RequestIDHeader); err != nil {
		return 0, false, err
	}
	if _, err := answers.Peek(1); err != nil {
		return 0, false, err
	}
	answer, err := http.ReadResponse(answers, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	if err != nil {
		return 0, false, fmt.Errorf("in the middle of an answer: %v", err) // hides io.EOF, which would mean that no answer has begun
	}
	return answer.StatusCode, answer.Close, nil
}

// TestShutdownUnderLoad: 200 clients buy while the shop receives SIGTERM. An answered sale has one
// record, and any other order has none: an order that comes too late for an answer is not started.
//
// Each answer has the status that the shop's log has for the order. An order may get no answer only
// if it is sent while the shop closes the connection, or before the shop has accepted it. No
// HTTP/1.1 server can prevent that (RFC 9112, section 9.5). The shop exits with 0 by itself.
func TestShutdownUnderLoad(t *testing.T) {
	t.Parallel()
	e := enginetest.Local(t)
	const clients = 200
	strategies := []string{"for-update", "coalesced", "redis-lua"}
	serve := shoptest.Raced(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--wait", "1m", "--log-level", "debug"}, serveArgs(e)...)...)
	var log shoptest.Buffer
	serve.Stderr = &log
	base := shoptest.Serve(t, serve)
	for _, strategy := range strategies {
		webtest.Restock(t, base, "stop-"+strategy, 1_000_000)
	}
	http.DefaultClient.CloseIdleConnections()

	var f fates
	var sold atomic.Int64
	var crowd sync.WaitGroup
	for i := range clients {
		strategy := strategies[i%len(strategies)]
		path := "/product/buy?purchaser=ann&lock=" + strategy + "&product=stop-" + strategy
		crowd.Go(func() {
			f.buyUntilRefused(t, strings.TrimPrefix(base, "http://"), path, fmt.Sprintf("stop-%d", i), &sold)
		})
	}
	webtest.Eventually(t, "all are served", func() bool { return sold.Load() > 3*clients })
	before := sold.Load()
	require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
	crowd.Wait()
	if err := serve.Wait(); err != nil {
		t.Errorf("exit: %v, want 0: %.10000s", err, log.String())
	}
	t.Logf("%d sold, %d of them after the signal, %d refused, %d unanswered", len(f.sold), sold.Load()-before, len(f.refused), len(f.unanswered))
	if sold.Load() == before {
		t.Error("nobody was sold to after the signal: there was no load")
	}

	logged := map[string]string{} // status by key
	for _, line := range regexp.MustCompile(`request_id=(stop-\S+) .* status=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
		logged[line[1]] = line[2]
	}
	for status, keys := range map[string][]string{"200": f.sold, "503": f.refused, "": f.unanswered} {
		for _, key := range keys {
			if logged[key] != status {
				t.Errorf("%s heard %q; the shop's log says %q", key, status, logged[key])
			}
			delete(logged, key)
		}
	}
	for key, status := range logged {
		t.Errorf("the shop's log says %s of %s, which nobody has sent", status, key)
	}

	var recorded []struct {
		Key  string
		Rows int
	}
	require.NoError(t, e.DB.Raw("SELECT idempotency_key AS `key`, COUNT(*) AS `rows` FROM purchase_history WHERE product_name LIKE 'stop-%' GROUP BY idempotency_key").Scan(&recorded).Error)
	rows := map[string]int{}
	for _, r := range recorded {
		rows[r.Key] = r.Rows
	}
	for _, key := range f.sold {
		if rows[key] != 1 {
			t.Errorf("%s was sold to and has %d records", key, rows[key])
		}
	}
	for _, key := range append(f.refused, f.unanswered...) {
		if rows[key] != 0 {
			t.Errorf("%s was not told of a sale and has %d records", key, rows[key])
		}
	}
}

// TestServedGame: the served program plays in a child process. shop explore runs the played
// schedule again, and no child is left when the shop has ended.
func TestServedGame(t *testing.T) {
	t.Parallel()
	serve := shoptest.Raced(t, "serve", "--addr", "127.0.0.1:0", "--log-level", "error")
	base := shoptest.Serve(t, serve)
	if r := webtest.Call(t, http.MethodGet, base+"/play", "", nil); r.Status != http.StatusOK || !bytes.Contains(r.Body, []byte("/play/app.js")) {
		t.Errorf("the page: %d %.200s", r.Status, r.Body)
	}
	type game struct {
		ID       string        `json:"id"`
		Position play.Position `json:"position"`
		Won      *struct{}     `json:"won"`
	}
	g := webtest.Decode[game](t, webtest.Call(t, http.MethodPost, base+"/play/games", `{"level":"sell-twice"}`, asJSON))
	if g.ID == "" {
		t.Fatal("no game")
	}
	children := childrenOf(t, serve.Process.Pid)
	if len(children) == 0 {
		t.Error("the game is no process of its own")
	}
	for _, token := range strings.Fields("1 1 2 2 2 2 2 1 1 1") {
		g = webtest.Decode[game](t, webtest.Call(t, http.MethodPost, base+"/play/games/"+g.ID+"/moves", fmt.Sprintf(`{"token":%q}`, token), asJSON))
	}
	if g.Won == nil || g.Position.End == nil {
		t.Fatalf("the level is not won: %+v", g)
	}
	again, found := strings.CutPrefix(g.Position.End.Replay, "shop ")
	if !found {
		t.Fatal(g.Position.End.Replay)
	}
	code, stdout, stderr := shoptest.RunRaced(t, strings.Fields(again)...)
	if code != exitBroken || !strings.Contains(stdout, string(g.Position.End.Verdict)+": "+g.Position.End.Why) {
		t.Errorf("run again: exit %d, %s%s", code, stdout, stderr)
	}
	require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
	if err := serve.Wait(); err != nil {
		t.Errorf("the shop ended with %v", err)
	}
	for _, child := range children {
		webtest.Eventually(t, fmt.Sprintf("process %d ends", child), func() bool {
			p, err := os.FindProcess(child)
			return err != nil || p.Signal(syscall.Signal(0)) != nil
		})
	}
}

func childrenOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skip("no /proc to look at: on this system the children are not found")
	}
	for _, file := range files {
		command, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(command, []byte("\x00"+playChild+"\x00")) {
			continue // the process has ended, or is no child
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		_, fields, named := strings.Cut(string(stat), ") ")
		var state string
		var pid, of int
		if _, scanned := fmt.Sscan(fields, &state, &of); err != nil || !named || scanned != nil || of != parent {
			continue
		}
		if _, err := fmt.Sscan(string(stat), &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
