package loadtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oversell/oversell/internal/purchase"
)

// An answer is what one buyer got.
type answer struct {
	start, end time.Time
	outcome    purchase.Outcome
	purchaser  string  // who asked, whatever the receipt says
	receipt    receipt // of a sale
	detail     string  // of anything that is no sale
}

type receipt struct {
	ID        int64  `json:"id"`
	Purchaser string `json:"purchaser"`
	Amount    int64  `json:"amount"`
}

// crowd is a number of buyers that ask for one unit each.
type crowd struct {
	baseURLs []string
	query    url.Values // of the buy
	run      string     // makes the purchasers of this crowd its own
	buyers   int
	duration time.Duration // 0: each buyer asks once
	timeout  time.Duration // of one request
}

// rush sends the crowd and returns every answer, in no order. progress is
// called after each with the number so far. When ctx ends, no more buyers are
// sent; the answers of those on their way are still awaited.
func (c crowd) rush(ctx context.Context, progress func(answered int)) []answer {
	transport := &http.Transport{MaxIdleConns: c.buyers, MaxIdleConnsPerHost: c.buyers}
	// A connection that was dialled and never used would hold up the shutdown
	// of the service for 5 s (http.Server.Shutdown, state StateNew).
	defer transport.CloseIdleConnections()
	attacker := vegeta.NewAttacker(
		vegeta.Client(&http.Client{Transport: transport, Timeout: c.timeout}),
		vegeta.Workers(uint64(c.buyers)), vegeta.MaxWorkers(uint64(c.buyers)),
	)
	stop := context.AfterFunc(ctx, func() { attacker.Stop() })
	defer stop()

	gate := newStartGate(ctx, c.buyers, &http.Client{Transport: transport, Timeout: c.timeout})
	var pacer vegeta.Pacer = once{c.buyers}
	if c.duration > 0 {
		gate.open()
		pacer = vegeta.ConstantPacer{} // no pause: each buyer asks again as soon as it is answered
	}
	var answers []answer
	for r := range attacker.Attack(c.targeter(gate), pacer, c.duration, "") {
		if r.Error == vegeta.ErrNoTargets.Error() {
			continue // never sent: the rush was interrupted at the start
		}
		a := readAnswer(r)
		if c.duration == 0 {
			a.start = gate.opened // the wait for the others is not the shop's
		}
		answers = append(answers, a)
		progress(len(answers))
	}
	return answers
}

// targeter hands each buyer its request, spread over the processes in turn.
func (c crowd) targeter(gate *startGate) vegeta.Targeter {
	var mu sync.Mutex
	sent := 0
	return func(t *vegeta.Target) error {
		mu.Lock()
		n := sent
		sent++
		mu.Unlock()
		query := url.Values{"purchaser": {fmt.Sprintf("%s-%05d", c.run, n)}}
		for name, values := range c.query {
			query[name] = values
		}
		t.Method = http.MethodGet
		t.URL = c.baseURLs[n%len(c.baseURLs)] + "/product/buy?" + query.Encode()
		return gate.wait(c.baseURLs[n%len(c.baseURLs)])
	}
}

// once is a pacer that sends each buyer one time, without a pause.
type once struct{ buyers int }

func (o once) Pace(_ time.Duration, hits uint64) (time.Duration, bool) {
	return 0, hits >= uint64(o.buyers)
}

func (o once) Rate(time.Duration) float64 { return 0 } // of no use to a crowd

// startGate holds the buyers back until all of them stand at it with an open
// connection, so that they start at once and not as fast as one loop can dial.
type startGate struct {
	ctx     context.Context
	client  *http.Client
	mu      sync.Mutex
	missing int
	opens   chan struct{}
	opened  time.Time // valid once opens is closed
}

func newStartGate(ctx context.Context, buyers int, client *http.Client) *startGate {
	return &startGate{ctx: ctx, client: client, missing: buyers, opens: make(chan struct{})}
}

func (g *startGate) open() {
	g.opened = time.Now()
	close(g.opens)
}

// wait returns when everybody is here. Once the gate is open it does not wait.
func (g *startGate) wait(baseURL string) error {
	select {
	case <-g.opens:
		return nil
	default:
	}
	g.connect(baseURL)
	g.mu.Lock()
	g.missing--
	if g.missing == 0 {
		g.open()
	}
	g.mu.Unlock()
	select {
	case <-g.opens:
		return nil
	case <-g.ctx.Done():
		return vegeta.ErrNoTargets
	}
}

// connect leaves an open connection in the pool. What the service answers, and
// whether it does, is of no interest: the buy will tell.
func (g *startGate) connect(baseURL string) {
	request, err := http.NewRequestWithContext(g.ctx, http.MethodGet, baseURL+"/healthz", nil)
	if err != nil {
		return
	}
	response, err := g.client.Do(request)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
	_ = response.Body.Close()
}

// readAnswer maps a response to an outcome: by the problem's own word, or by
// the status where the service has none. No response at all is Unknown: the
// sale may have been made.
func readAnswer(r *vegeta.Result) answer {
	a := answer{start: r.Timestamp, end: r.Timestamp.Add(r.Latency)}
	if u, err := url.Parse(r.URL); err == nil {
		a.purchaser = u.Query().Get("purchaser")
	}
	var problem struct {
		Outcome purchase.Outcome `json:"outcome"`
		Detail  string           `json:"detail"`
	}
	switch {
	case r.Code == 0:
		a.outcome, a.detail = purchase.Unknown, r.Error
		return a
	case r.Code == http.StatusOK:
		a.outcome = purchase.Sold
		if err := json.Unmarshal(r.Body, &a.receipt); err != nil {
			a.outcome, a.detail = purchase.Failed, "200 with a body that is no receipt: "+err.Error()
		} else if a.receipt.ID <= 0 {
			a.outcome, a.detail = purchase.Failed, "200 with a receipt that has no id"
		}
		return a
	}
	if json.Unmarshal(r.Body, &problem) == nil && slices.Contains(purchase.Outcomes(), problem.Outcome) {
		a.outcome = problem.Outcome
	} else {
		a.outcome = outcomeOfStatus(int(r.Code))
	}
	a.detail = fmt.Sprintf("%d %s", r.Code, cmp.Or(problem.Detail, http.StatusText(int(r.Code))))
	return a
}

func outcomeOfStatus(code int) purchase.Outcome {
	switch code {
	case http.StatusConflict:
		return purchase.SoldOut
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return purchase.Busy
	case http.StatusGatewayTimeout:
		return purchase.Unknown
	}
	return purchase.Failed
}

// maxOverlap is the most answers that were awaited at one moment.
func maxOverlap(answers []answer) int {
	type edge struct {
		at    time.Time
		delta int
	}
	edges := make([]edge, 0, 2*len(answers))
	for _, a := range answers {
		edges = append(edges, edge{a.start, 1}, edge{a.end, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.delta, b.delta)) // at a tie the end comes first
	})
	now, most := 0, 0
	for _, e := range edges {
		now += e.delta
		most = max(most, now)
	}
	return most
}

// percentile is the nearest-rank percentile of sorted latencies; 0 for none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(p/100*float64(len(sorted))+0.9999999) - 1
	return sorted[max(0, min(rank, len(sorted)-1))]
}
