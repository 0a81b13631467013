package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/web/webtest"
)

// full is a strategy that refuses every buyer.
type full struct{ came atomic.Int64 }

func (f *full) Buy(context.Context, purchase.Order) (purchase.Receipt, error) {
	f.came.Add(1)
	return purchase.Receipt{}, &purchase.Overloaded{RetryAfter: time.Hour}
}

// refusedClient sends its orders over one connection.
type refusedClient struct {
	name    string
	conn    net.Conn
	answers *bufio.Reader
}

func (c *refusedClient) order(t *testing.T) {
	t.Helper()
	if _, err := fmt.Fprintf(c.conn, "POST /product/buy?lock=full&purchaser=%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", c.name); err != nil {
		t.Errorf("%s: %v", c.name, err)
	}
}

// wantBusy reads the answer that the shop is busy. last: it is the last answer over this
// connection.
func (c *refusedClient) wantBusy(t *testing.T, last bool) {
	t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(webtest.Patience))
	answer, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		t.Fatalf("%s: %v, want an answer", c.name, err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Close != last || err != nil {
		t.Errorf("%s: %s, last %v, %v; want 503, last %v", c.name, answer.Status, answer.Close, err, last)
	}
}

// TestHeldUpGiveWay: delayed refusals that occupy all connections do not block a new client. The
// one that has waited longest is answered, and its connection ends. A stop does not wait for them
// either.
func TestHeldUpGiveWay(t *testing.T) {
	t.Parallel()
	const most = 10
	settings := lockstrategy.DefaultSettings()
	settings.Wait = time.Hour
	shop := New(enginetest.Embedded(t), Config{Settings: settings, MaxInflight: 100, MaxConnections: most}, slog.New(slog.DiscardHandler))
	var till full
	shop.counter.Strategies["full"] = &till

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- shop.Serve(ctx, "127.0.0.1:0", "", in)
		_ = in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimPrefix(strings.TrimSpace(line), localserver.Listening+"http://")

	come := func(name string) *refusedClient {
		conn := dialed(t, addr)
		c := &refusedClient{name, conn, bufio.NewReader(conn)}
		c.order(t)
		c.wantBusy(t, false)
		return c
	}
	var early, newcomers []*refusedClient
	for i := range most {
		early = append(early, come(fmt.Sprintf("early-%d", i)))
	}
	for i, c := range early { // one after the other, so that they wait in this order
		c.order(t)
		webtest.Eventually(t, "it is there", func() bool { return till.came.Load() == int64(most+i+1) })
	}
	for i := range most {
		newcomers = append(newcomers, come(fmt.Sprintf("newcomer-%d", i)))
	}
	for _, c := range early {
		c.wantBusy(t, true)
	}
	for i, c := range newcomers {
		c.order(t)
		webtest.Eventually(t, "it is there", func() bool { return till.came.Load() == int64(3*most+i+1) })
	}
	stop()
	for _, c := range newcomers {
		c.wantBusy(t, true)
	}
	if err := <-ended; err != nil {
		t.Errorf("the stop: %v", err)
	}
}
