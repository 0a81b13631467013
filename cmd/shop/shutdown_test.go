package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/enginetest"
)

// fates are what buyers heard, by Idempotency-Key.
type fates struct {
	mu                        sync.Mutex
	sold, refused, unanswered []string
}

// buyUntilRefused buys over a connection, and over a new one whenever that ends, until no
// connection is to be had.
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

// buyRaw sends an order once: http.Client would send it again where the answer does not come.
func buyRaw(conn net.Conn, answers *bufio.Reader, path, key string) (status int, last bool, _ error) {
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: %s\r\nContent-Length: 0\r\n\r\n", path, key); err != nil {
		return 0, false, err
	}
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		return 0, false, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Close, err
}

// TestShutdownUnderLoad: 200 clients buy while the shop is told to stop. Who is sold to has one
// record, and who is not told so has none: an order that comes too late for an answer is not
// begun. The shop ends by itself, with 0.
func TestShutdownUnderLoad(t *testing.T) {
	e := enginetest.Local(t)
	const clients = 200
	strategies := []string{"for-update", "coalesced", "redis-lua"}
	serve := shopCommand(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--wait", "1m"}, serveArgs(e)...)...)
	var log syncBuffer
	serve.Stderr = &log
	base := served(t, serve)
	for _, strategy := range strategies {
		restock(t, base, "stop-"+strategy, 1_000_000)
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
	eventually(t, "all are served", func() bool { return sold.Load() > 3*clients })
	before := sold.Load()
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	crowd.Wait()
	if err := serve.Wait(); err != nil {
		t.Errorf("exit: %v, want 0: %s", err, log.String())
	}
	t.Logf("%d sold, %d of them after the signal, %d refused, %d unanswered", len(f.sold), sold.Load()-before, len(f.refused), len(f.unanswered))
	if sold.Load() == before {
		t.Error("nobody was sold to after the signal: there was no load")
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
