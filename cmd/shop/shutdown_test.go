package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/web/problem"
	"github.com/oversell/oversell/internal/web/webtest"
)

// fates are the buyers' answers by Idempotency-Key.
type fates struct {
	mu                        sync.Mutex
	sold, refused, unanswered []string
}

// buyUntilRefused buys over a connection, and over a new one whenever it ends, until no connection
// can be opened.
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

// buyRaw sends an order once; http.Client would repeat it without an answer. The request's id is
// the key. The error is io.EOF, ECONNRESET or EPIPE if the connection ended before an answer began.
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
		return 0, false, fmt.Errorf("in the middle of an answer: %v", err) // must not look like an answer that has not begun
	}
	return answer.StatusCode, answer.Close, nil
}

// TestShutdownUnderLoad: 200 clients buy while the shop receives SIGTERM. An answered sale has one
// record, and any other order has none: an order that comes too late for an answer is not started.
//
// The shop answers every order in its own log, with the logged status. An order may get no answer
// only if it is sent while the shop closes the connection, or before the shop has accepted it. No
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
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
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
	if err := e.DB.Raw("SELECT idempotency_key AS `key`, COUNT(*) AS `rows` FROM purchase_history WHERE product_name LIKE 'stop-%' GROUP BY idempotency_key").Scan(&recorded).Error; err != nil {
		t.Fatal(err)
	}
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
