package rush

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oversell/oversell/internal/purchase"
)

// A Crowd is a number of buyers who ask for their units all at once. It is
// the one sender of crowds: of a rush, of the buyers who come after a fault, and
// of those that a target is verified by. vegeta does the sending.
type Crowd struct {
	BaseURLs []string // one a process, without a slash at the end; buyers are spread over them in turn
	Strategy string
	Product  string        // what is bought, where a buyer does not say
	Timeout  time.Duration // of one request, above 0
	// Dial opens the connections; nil opens them directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Leavers are told who waits for an answer; nil: nobody is.
	Leavers *Leavers
	// Answered is called with each answer as it comes, one call at a time. It may
	// be nil.
	Answered func(Answer)
}

// A Buyer is one request.
type Buyer struct {
	Name    string
	Units   int64  // asked for; 0 is 1
	Product string // "" is the crowd's
	// Key is an Idempotency-Key. A request with one is a POST that has the order
	// in the query and as JSON, as a service may read either; without one it is a
	// GET, which every service takes.
	Key string
	// HangUp is how long the buyer waits, from when its request is out, until it
	// closes the connection. 0: it stays.
	HangUp time.Duration
}

// Send sends every buyer at the same moment, each on a connection that is open
// already, and returns what each got, in the order of buyers. When ctx ends, no
// more buyers are sent and those under way hang up; a buyer that was not sent is
// Unknown and has no times.
func (c Crowd) Send(ctx context.Context, buyers []Buyer) []Answer {
	s := c.sender(ctx, len(buyers), func(n int) Buyer { return buyers[n] })
	defer s.transport.CloseIdleConnections()
	answers := make([]Answer, len(buyers))
	for n, b := range buyers {
		answers[n].Purchaser, answers[n].Outcome = b.Name, purchase.Unknown
	}
	return s.attack(once{len(buyers)}, 0, answers)
}

// Keep lets so many buyers ask again and again for so long, each as soon as it
// is answered. buyer says who sends request n, and is called by several goroutines at once.
// It returns the answers in the order of the requests; ctx is as in Send.
func (c Crowd) Keep(ctx context.Context, buyers int, duration time.Duration, buyer func(n int) Buyer) []Answer {
	s := c.sender(ctx, buyers, buyer)
	defer s.transport.CloseIdleConnections()
	s.gate.open()
	return s.attack(vegeta.ConstantPacer{}, duration, nil) // a pacer that never pauses
}

// sender is a crowd on its way. It hands each request to vegeta, and as the
// transport below vegeta's client sees when the request is out and answered.
type sender struct {
	Crowd
	ctx       context.Context
	buyer     func(n int) Buyer
	workers   int
	gate      *startGate
	transport *http.Transport

	mu   sync.Mutex
	sent int
	at   map[string]*moments // by the number of the request
}

// moments are when things happened to one request.
type moments struct {
	buyer       Buyer
	left        time.Time // the gate
	sent, begun time.Time // the request was out; the answer began
	hungUp      bool
}

func (c Crowd) sender(ctx context.Context, workers int, buyer func(n int) Buyer) *sender {
	transport := &http.Transport{DialContext: c.Dial, MaxIdleConns: workers, MaxIdleConnsPerHost: workers}
	return &sender{
		Crowd: c, ctx: ctx, buyer: buyer, workers: workers, transport: transport, at: map[string]*moments{},
		gate: newStartGate(ctx, workers, &http.Client{Transport: transport, Timeout: c.Timeout}),
	}
}

// attack sends what the pacer lets through and puts the answers where they
// belong.
func (s *sender) attack(pacer vegeta.Pacer, duration time.Duration, answers []Answer) []Answer {
	attacker := vegeta.NewAttacker(
		vegeta.Client(&http.Client{Transport: s}),
		vegeta.Workers(uint64(s.workers)), vegeta.MaxWorkers(uint64(s.workers)),
	)
	defer context.AfterFunc(s.ctx, func() { attacker.Stop() })()
	for r := range attacker.Attack(s.next, pacer, duration, "") {
		if r.Error == vegeta.ErrNoTargets.Error() {
			continue // never sent: ctx ended at the start
		}
		n, a := s.answer(r)
		for len(answers) <= n {
			answers = append(answers, Answer{})
		}
		answers[n] = a
		if s.Answered != nil {
			s.Answered(a)
		}
	}
	return answers
}

// next is a vegeta.Targeter. The number of a request is the fragment of its URL,
// which stays on this side.
func (s *sender) next(t *vegeta.Target) error {
	s.mu.Lock()
	n := s.sent
	s.sent++
	s.mu.Unlock()
	b, base, id := s.buyer(n), s.BaseURLs[n%len(s.BaseURLs)], fmt.Sprint(n)
	product, units := cmp.Or(b.Product, s.Product), max(b.Units, 1)
	query := url.Values{"lock": {s.Strategy}, "product": {product}, "purchaser": {b.Name}}
	if units > 1 {
		query.Set("amount", strconv.FormatInt(units, 10))
	}
	t.Method, t.URL = http.MethodGet, base+"/product/buy?"+query.Encode()+"#"+id
	if b.Key != "" {
		body, err := json.Marshal(map[string]any{"lock": s.Strategy, "product": product, "purchaser": b.Name, "amount": units})
		if err != nil {
			return err
		}
		t.Method, t.Body = http.MethodPost, body
		t.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {b.Key}}
	}
	if err := s.gate.wait(base); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[id] = &moments{buyer: b, left: time.Now()}
	return nil
}

// once is a pacer that sends each buyer one time, without a pause.
type once struct{ buyers int }

func (o once) Pace(_ time.Duration, hits uint64) (time.Duration, bool) {
	return 0, hits >= uint64(o.buyers)
}

func (o once) Rate(time.Duration) float64 { return 0 } // of no use to a crowd
