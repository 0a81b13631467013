package buyers

import (
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"
)

// A Client sends requests over connections that it keeps open, each request at most once.
// Several goroutines may use it.
//
// net/http itself repeats a GET, and any request with an Idempotency-Key, if a reused connection breaks before
// the answer begins. A shop that sold to the first request would then sell twice to one buyer, and the verdict
// would blame the shop.
type Client struct {
	http    http.Client
	reserve *reserve
}

// NewClient returns a client that opens its connections with `dial`, or directly if `dial` is nil.
func NewClient(dial func(ctx context.Context, network, address string) (net.Conn, error)) *Client {
	var protocols http.Protocols
	protocols.SetHTTP1(true) // over HTTP/2 all buyers would share one connection
	r := newReserve(dial)
	return &Client{reserve: r, http: http.Client{Transport: once{&http.Transport{
		DialContext: r.take, Protocols: &protocols, DisableCompression: true, MaxIdleConnsPerHost: math.MaxInt,
	}}}}
}

// Close closes idle connections.
func (c *Client) Close() {
	c.reserve.close()
	c.http.CloseIdleConnections()
}

// once keeps net/http from sending a request twice.
type once struct{ *http.Transport }

// RoundTrip sends a request whose body cannot be read again, so net/http does not repeat the request
// (Request.isReplayable). A GET, HEAD or OPTIONS gets an empty body for this. The encoding "identity" keeps
// the sent bytes the same: with it, the transport announces no body. Without it, the transport reads ahead for
// 200 ms. On a busy machine it would then send an empty chunk, which many servers take for the next request.
func (o once) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.WithContext(request.Context()) // a copy, since a RoundTripper must not change the request
	request.GetBody = nil
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		request.TransferEncoding = []string{"identity"}
		if request.Body == nil || request.Body == http.NoBody {
			request.Body = io.NopCloser(strings.NewReader(""))
		}
	}
	return o.Transport.RoundTrip(request)
}

// An Exchange is one request and its answer.
type Exchange struct {
	Status            int // 0 without a complete answer; Err says why
	Header            http.Header
	Body              []byte
	Err               error
	Start, End        time.Time
	Sent, AnswerBegan time.Time // when the request was sent and its answer began; zero if that was not seen
	Connected         bool      // a connection was open, so the service may have read part of the request
	HungUp            bool      // the buyer closed the connection before the answer
}

// bodySize limits how many bytes of an answer are read.
const bodySize = 1 << 20

// Send sends a request and reads the answer, which may be a redirect. If ctx ends first, Send
// closes the connection.
func (c *Client) Send(ctx context.Context, request *http.Request) Exchange {
	return exchange(ctx, c.http.Transport.RoundTrip, request, func(func() bool) {})
}

// follow sends a request and follows redirects. After sending the request, it calls `out` with a function
// `hangUp`. `hangUp` closes the connection, and reports whether it did so before the answer began.
func (c *Client) follow(ctx context.Context, request *http.Request, out func(hangUp func() bool)) Exchange {
	return exchange(ctx, c.http.Do, request, out)
}

func exchange(ctx context.Context, do func(*http.Request) (*http.Response, error), request *http.Request, out func(hangUp func() bool)) Exchange {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu     sync.Mutex // guards x, since the connection's goroutines call the trace
		x      Exchange
		isOver bool
	)
	hangUp := func() bool {
		mu.Lock()
		defer mu.Unlock()
		if isOver || x.HungUp || !x.AnswerBegan.IsZero() {
			return false
		}
		x.HungUp = true
		cancel()
		return true
	}
	trace := &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			mu.Lock()
			defer mu.Unlock()
			x.Connected = true
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			mu.Lock()
			isFirst := info.Err == nil && x.Sent.IsZero() && !isOver // this request is the buyer's and not one of a redirect
			if isFirst {
				x.Sent = time.Now()
			}
			mu.Unlock()
			if isFirst {
				out(hangUp)
			}
		},
		GotFirstResponseByte: func() {
			mu.Lock()
			defer mu.Unlock()
			if x.AnswerBegan.IsZero() {
				x.AnswerBegan = time.Now()
			}
		},
	}
	start := time.Now()
	response, err := do(request.WithContext(httptrace.WithClientTrace(ctx, trace)))
	var body []byte
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(response.Body, bodySize))
		_ = response.Body.Close()
	}
	end := time.Now()
	mu.Lock()
	defer mu.Unlock()
	isOver = true
	x.Start, x.End, x.Err = start, end, err
	if err == nil {
		x.Status, x.Header, x.Body, x.HungUp = response.StatusCode, response.Header, body, false
	}
	return x
}
