// Package buyers sends buyers to a shop over HTTP and reads the answers.
//
//	Sender.AtOnce  each buyer opens a connection -> all requests at the same moment
//	Sender.Keep    askers send one request after the other, for a duration
//	Sender.One     one buyer
//
// Package buyers sends a request at most once; see Client. If an answer is lost, its outcome is
// purchase.Unknown. The program loadtest/run sends the same orders with k6 or vegeta.
package buyers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/purchase"
)

// A Sender sends buyers to the processes of a shop.
type Sender struct {
	URLs     []string // address of each process of the shop, without a trailing slash; requests use them in turn
	Strategy string
	Product  string        // the product of those buyers that do not name one
	Timeout  time.Duration // limit of one request with its answer; above 0
	// Patience is the longest time that the shop lets a buyer wait. The shop may answer "busy" with a Retry-After
	// in less than half of that time. Then the buyer sends its request again later. 0: each buyer asks once.
	Patience time.Duration
	Client   *Client      // nil: a new client for each call
	Answered func(Answer) // called with each buyer's last answer, one call at a time; may be nil
}

// A Buyer is one request.
type Buyer struct {
	Name    string
	URL     string // the process to ask; "" means one of the sender's URLs in turn
	Units   int64  // ordered units; 0 means 1
	Product string // "" means the sender's product
	// Key is an Idempotency-Key. A request with a key is a POST. It has the order both in the query and in a
	// JSON body, since services read one or the other. A request without a key is a GET.
	Key string
	// HangUp is the time from sending the request until the buyer closes the connection. 0: the buyer waits for
	// the answer.
	HangUp time.Duration
}

// A Loop describes askers: buyers that send one request after another.
type Loop struct {
	Duration time.Duration
	Going    context.Context // when it ends, the askers send no more requests; if it is nil, Duration alone stops them
	Askers   int
	Buyer    func(request int64) Buyer // returns the next request; called by several goroutines
}

// AtOnce sends all buyers at the same moment, each on an open connection, and returns the answers in the order of
// the buyers. When ctx ends, it sends no more buyers, and the waiting ones hang up. A buyer that was not sent has
// the outcome Unknown and no times. For a buyer that asked several times, AtOnce returns the last answer.
func (s Sender) AtOnce(ctx context.Context, all []Buyer) []Answer {
	c, end := s.begin()
	defer end()
	answers := make([]Answer, len(all))
	at := make([]string, len(all))
	wanted := map[string]int{}
	for n, b := range all {
		at[n] = s.process(b, int64(n))
		wanted[at[n]]++
	}
	c.connect(ctx, wanted)
	var gate, sent sync.WaitGroup
	gate.Add(len(all))
	for n, b := range all {
		answers[n].Purchaser, answers[n].Outcome = b.Name, purchase.Unknown
		sent.Go(func() {
			gate.Done()
			gate.Wait()
			if ctx.Err() == nil {
				answers[n] = c.ask(ctx, ctx, at[n], b)
			}
		})
	}
	sent.Wait()
	c.Client.reserve.close()
	return answers
}

// One sends one buyer to the first process, or to the buyer's own URL.
func (s Sender) One(ctx context.Context, b Buyer) Answer {
	c, end := s.begin()
	defer end()
	return c.ask(ctx, ctx, s.process(b, 0), b)
}

// Keep runs askers for a duration and returns when every request is answered. It only passes the answers to
// the function Answered, since there may be millions of them. When ctx ends, the waiting requests hang up.
func (s Sender) Keep(ctx context.Context, l Loop) {
	c, end := s.begin()
	defer end()
	going := ctx
	if l.Going != nil {
		going = l.Going
	}
	going, stop := context.WithTimeout(going, l.Duration)
	defer stop()
	var askers sync.WaitGroup
	var requests atomic.Int64
	for range l.Askers {
		askers.Go(func() {
			for going.Err() == nil {
				request := requests.Add(1) - 1
				b := l.Buyer(request)
				c.ask(ctx, going, c.process(b, request), b)
			}
		})
	}
	askers.Wait()
}

// call is the state of one call of AtOnce, One or Keep.
type call struct {
	Sender
	mu     sync.Mutex   // guards calls of Answered
	served atomic.Int64 // time of the last answer other than busy, in nanoseconds of Unix time
}

func (s Sender) begin() (c *call, end func()) {
	c, end = &call{Sender: s}, func() {}
	if c.Client == nil {
		c.Client = NewClient(nil)
		end = c.Client.Close
	}
	return c, end
}

func (s Sender) process(b Buyer, request int64) string {
	if b.URL != "" {
		return b.URL
	}
	return s.URLs[request%int64(len(s.URLs))]
}

// connect opens wanted[url] connections to each process in advance.
func (c *call) connect(ctx context.Context, wanted map[string]int) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var all sync.WaitGroup
	for url, n := range wanted {
		all.Go(func() { c.Client.reserve.fill(ctx, url, n) })
	}
	all.Wait()
}

func (c *call) visit(ctx context.Context, base string, b Buyer) Answer {
	request, err := c.Order(base, b)
	if err != nil {
		now := time.Now()
		return AnswerOf(Exchange{Start: now, End: now, Err: err}, b)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	a := AnswerOf(c.Client.follow(ctx, request, func(hangUp func() bool) {
		if b.HangUp > 0 {
			time.AfterFunc(b.HangUp, func() { hangUp() })
		}
	}), b)
	if a.Outcome != purchase.Busy && a.Status > 0 {
		c.served.Store(a.End.UnixNano())
	}
	return a
}

// Order returns the HTTP request of a buyer. `base` is the address of the process, without a trailing slash.
func (s Sender) Order(base string, b Buyer) (*http.Request, error) {
	product, units := cmp.Or(b.Product, s.Product), max(b.Units, 1)
	query := url.Values{"lock": {s.Strategy}, "product": {product}, "purchaser": {b.Name}}
	if units > 1 {
		query.Set("amount", strconv.FormatInt(units, 10))
	}
	buy := base + "/product/buy?" + query.Encode()
	if b.Key == "" {
		return http.NewRequest(http.MethodGet, buy, nil)
	}
	body, err := json.Marshal(map[string]any{"lock": s.Strategy, "product": product, "purchaser": b.Name, "amount": units})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, buy, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header["Idempotency-Key"] = []string{b.Key}
	return request, nil
}
