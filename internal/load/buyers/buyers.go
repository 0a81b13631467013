// Package buyers sends buyers to a shop over HTTP and reads the answers.
//
//	Sender.AtOnce  each buyer opens a connection -> gate -> all requests at the same moment
//	Sender.Keep    askers that send one request after the other, for a duration
//	Sender.One     one buyer
//
// It is the only load generator of the project. It sends a request at most once; see Client.
// A buyer whose answer is lost is purchase.Unknown.
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
	URLs     []string // one a process, without a slash at the end; requests are spread over them in turn
	Strategy string
	Product  string        // for buyers that name none
	Timeout  time.Duration // of one request with its answer, above 0
	// Patience is how long a buyer waits inside the shop. A buyer that the shop refuses with
	// Retry-After, before half of Patience is over, comes back. 0: each buyer asks once.
	Patience time.Duration
	Client   *Client      // nil: a client of its own for each call
	Leavers  *Leavers     // learns which buyers wait for an answer; nil: none does
	Answered func(Answer) // called with each answer as it comes; AtOnce and Keep make one call at a time; may be nil
}

// A Buyer is one request.
type Buyer struct {
	Name    string
	URL     string // the process it asks; "" takes one of the sender's in turn
	Units   int64  // asked for; 0 is 1
	Product string // "" is the sender's
	// Key is an Idempotency-Key. A request with a key is a POST with the order in the query
	// and as JSON, since services differ in which they read. Without a key it is a GET,
	// which every service takes.
	Key string
	// HangUp is how long the buyer waits after its request is out until it closes the
	// connection. 0: it stays.
	HangUp time.Duration
}

// A Loop describes askers that send one request after the other.
type Loop struct {
	Duration time.Duration
	Askers   func(share float64) int              // how many ask at this share of Duration, 0 to 1
	Buyer    func(asker int, request int64) Buyer // makes a request; several goroutines call it at once
	Pause    time.Duration                        // after an answer other than sold and sold out
}

// Constant is Loop.Askers for the same number of askers all the time.
func Constant(askers int) func(float64) int { return func(float64) int { return askers } }

// AtOnce sends every buyer at the same moment, each on a connection that is open already,
// and returns the answers in the order of the buyers. When ctx ends, it sends no more buyers
// and those under way hang up. A buyer that was not sent is Unknown and has no times. A buyer that
// came back is represented by its last answer.
func (s Sender) AtOnce(ctx context.Context, all []Buyer) []Answer {
	c, end := s.begin()
	defer end()
	answers := make([]Answer, len(all))
	var gate, sent sync.WaitGroup
	gate.Add(len(all))
	for n, b := range all {
		answers[n].Purchaser, answers[n].Outcome = b.Name, purchase.Unknown
		sent.Go(func() {
			url := s.process(b, int64(n))
			c.connect(ctx, url)
			gate.Done()
			gate.Wait()
			if ctx.Err() == nil {
				answers[n] = c.ask(ctx, ctx, url, b)
			}
		})
	}
	sent.Wait()
	return answers
}

// One sends one buyer to the first process, or to its own.
func (s Sender) One(ctx context.Context, b Buyer) Answer {
	c, end := s.begin()
	defer end()
	return c.ask(ctx, ctx, s.process(b, 0), b)
}

// adjustEvery is how often Keep changes the number of askers.
const adjustEvery = 20 * time.Millisecond

// Keep lets askers ask again and again, and returns when the duration is over and every
// request is answered. It hands the answers to Answered alone: minutes have millions of them.
// When ctx ends, the requests under way hang up.
func (s Sender) Keep(ctx context.Context, l Loop) {
	c, end := s.begin()
	defer end()
	var askers sync.WaitGroup
	defer askers.Wait()
	asking, stopAll := context.WithCancel(ctx)
	defer stopAll()
	var requests atomic.Int64
	var stops []context.CancelFunc // of the askers that ask now
	over, tick := time.After(l.Duration), time.NewTicker(adjustEvery)
	defer tick.Stop()
	for start := time.Now(); ; {
		want := l.Askers(min(1, float64(time.Since(start))/float64(l.Duration)))
		for n := len(stops); n < want; n++ {
			going, stop := context.WithCancel(asking)
			stops = append(stops, stop)
			askers.Go(func() { c.keep(ctx, going, l, n, &requests) })
		}
		for len(stops) > want {
			stops[len(stops)-1]()
			stops = stops[:len(stops)-1]
		}
		select {
		case <-tick.C:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// call is one call of a sender.
type call struct {
	Sender
	mu     sync.Mutex   // for Answered
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

// process is where a buyer asks.
func (s Sender) process(b Buyer, request int64) string {
	if b.URL != "" {
		return b.URL
	}
	return s.URLs[request%int64(len(s.URLs))]
}

// keep is one asker. It stops to ask when going ends.
func (c *call) keep(ctx, going context.Context, l Loop, asker int, requests *atomic.Int64) {
	for going.Err() == nil {
		request := requests.Add(1) - 1
		b := l.Buyer(asker, request)
		a := c.ask(ctx, going, c.process(b, request), b)
		if l.Pause == 0 || a.Outcome == purchase.Sold || a.Outcome == purchase.SoldOut {
			continue
		}
		select {
		case <-time.After(l.Pause):
		case <-going.Done():
		}
	}
}

// connect leaves an open connection to the process. The answer does not matter, nor whether
// there is one: the buy will show it.
func (c *call) connect(ctx context.Context, base string) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if request, err := http.NewRequest(http.MethodGet, base+"/healthz", nil); err == nil {
		c.Client.Send(ctx, request)
	}
}

// visit sends one request and reads its answer.
func (c *call) visit(ctx context.Context, base string, b Buyer) Answer {
	request, err := c.order(base, b)
	if err != nil {
		now := time.Now()
		return answerOf(Exchange{Start: now, End: now, Err: err}, b)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	a := answerOf(c.Client.follow(ctx, request, func(hangUp func() bool) {
		if b.HangUp > 0 {
			time.AfterFunc(b.HangUp, func() { hangUp() })
		}
		context.AfterFunc(ctx, c.Leavers.came(hangUp)) // ctx ends with the answer
	}), b)
	if a.Outcome != purchase.Busy && a.Status > 0 {
		c.served.Store(a.End.UnixNano())
	}
	return a
}

// order is the request that buys.
func (s Sender) order(base string, b Buyer) (*http.Request, error) {
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
