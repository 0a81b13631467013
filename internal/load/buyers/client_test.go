package buyers

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

// breaking answers the first request of each connection, and closes the connection when it has read a second
// one. It counts the requests by purchaser.
type breaking struct {
	mu   sync.Mutex
	read map[string]int
}

func (b *breaking) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			for r, n := bufio.NewReader(c), 0; ; n++ {
				request, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				b.mu.Lock()
				b.read[request.URL.Query().Get("purchaser")]++
				b.mu.Unlock()
				if n > 0 {
					return
				}
				fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"id\":1}")
			}
		}()
	}
}

// TestNoResend: if a reused connection breaks before the answer, net/http repeats the request. This
// package does not, with a key or without; the buyer is Unknown.
func TestNoResend(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	shop := breaking{read: map[string]int{}}
	go shop.serve(l)
	url := "http://" + l.Addr().String()

	plain := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}} // the second request waits for the first one's connection
	defer plain.CloseIdleConnections()
	for _, name := range []string{"warm", "plain"} {
		response, err := plain.Get(url + "/product/buy?purchaser=" + name)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, response.Body) // the connection can be used again
		_ = response.Body.Close()
	}
	for _, key := range []string{"", "key"} {
		s := senderTo(url)
		s.Client = NewClient(nil)
		defer s.Client.Close()
		s.One(t.Context(), Buyer{Name: "first" + key})
		a := s.One(t.Context(), Buyer{Name: "ours" + key, Key: key})
		if a.Outcome != purchase.Unknown || a.Sent.IsZero() || a.Unreached || a.Status != 0 {
			t.Errorf("key %q, the connection broke: %+v; want unknown, and sent", key, a)
		}
	}
	shop.mu.Lock()
	defer shop.mu.Unlock()
	if shop.read["plain"] != 2 || shop.read["ours"] != 1 || shop.read["ourskey"] != 1 {
		t.Errorf("the shop has read %v; want a plain request twice and each of ours once", shop.read)
	}
}

// TestOnTheWire: preventing a second request does not change the first one.
func TestOnTheWire(t *testing.T) {
	t.Parallel()
	var text atomic.Value
	url := service(t, func(w http.ResponseWriter, r *http.Request) {
		dump, _ := httputil.DumpRequest(r, true)
		text.Store(string(dump))
		w.WriteHeader(http.StatusConflict)
	})
	host := strings.TrimPrefix(url, "http://")
	for buyer, want := range map[Buyer]string{
		{Name: "b"}: "GET /product/buy?lock=any&product=apple&purchaser=b HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: Go-http-client/1.1\r\n\r\n",
		{Name: "b", Key: "k"}: "POST /product/buy?lock=any&product=apple&purchaser=b HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 59\r\n" +
			"Content-Type: application/json\r\nIdempotency-Key: k\r\nUser-Agent: Go-http-client/1.1\r\n\r\n" +
			`{"amount":1,"lock":"any","product":"apple","purchaser":"b"}`,
		{Name: "b", Key: "k", Units: 2, Product: "pear"}: "POST /product/buy?amount=2&lock=any&product=pear&purchaser=b HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 58\r\n" +
			"Content-Type: application/json\r\nIdempotency-Key: k\r\nUser-Agent: Go-http-client/1.1\r\n\r\n" +
			`{"amount":2,"lock":"any","product":"pear","purchaser":"b"}`,
	} {
		senderTo(url).One(t.Context(), buyer)
		expect.Equal[any](t, text.Load(), want, buyer, "sent")
	}
}

// slowNothing is an empty body whose Read takes longer than net/http waits for its end.
type slowNothing struct{}

func (slowNothing) Read([]byte) (int, error) {
	time.Sleep(300 * time.Millisecond)
	return 0, io.EOF
}

// TestNoEmptyChunk: the client sends a GET without a chunk, even if the machine is busy for 200 ms meanwhile. A
// server that ignores bodies would read an empty chunk as its next request.
func TestNoEmptyChunk(t *testing.T) {
	t.Parallel()
	var encoding atomic.Value
	url := service(t, func(_ http.ResponseWriter, r *http.Request) { encoding.Store(fmt.Sprint(r.TransferEncoding)) })
	c := NewClient(nil)
	defer c.Close()
	request, err := http.NewRequest(http.MethodGet, url+"/product/buy", slowNothing{})
	require.NoError(t, err)
	if x := c.Send(t.Context(), request); x.Err != nil || encoding.Load() != "[]" {
		t.Errorf("sent with the encoding %v, %v; want none", encoding.Load(), x.Err)
	}
}

// TestKeepsConnections: buyers of one client, one after the other, share a connection.
func TestKeepsConnections(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id": 1}`) }))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	s := senderTo(server.URL)
	s.Client = NewClient(nil)
	defer s.Client.Close()
	for range 3 {
		if a := s.One(t.Context(), Buyer{Name: "b"}); a.Outcome != purchase.Sold || a.Unreached {
			t.Errorf("%+v", a)
		}
	}
	expect.Equal(t, opened.Load(), 1, "connections")
}
