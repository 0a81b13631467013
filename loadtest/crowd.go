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
	"strconv"
	"strings"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oversell/oversell/internal/purchase"
)

// An answer is what one buyer got.
type answer struct {
	start, end time.Time    // as the buyer saw it: from leaving the gate to the last byte
	inside     [2]time.Time // as the shop saw it, where it says so; else zero
	outcome    purchase.Outcome
	purchaser  string  // who asked, whatever the receipt says
	receipt    receipt // of a sale
	detail     string  // of anything that is no sale
}

func (a answer) saysWhen() bool { return !a.inside[0].IsZero() }

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
	line := queue{crowd: c, gate: gate, left: map[string]time.Time{}}
	var answers []answer
	for r := range attacker.Attack(line.next, pacer, c.duration, "") {
		if r.Error == vegeta.ErrNoTargets.Error() {
			continue // never sent: the rush was interrupted at the start
		}
		a := readAnswer(r)
		a.start = line.leftAt(a.purchaser) // the wait for the others is not the shop's
		answers = append(answers, a)
		progress(len(answers))
	}
	return answers
}

// queue hands each buyer its request, spread over the processes in turn, and
// notes when the buyer left the gate with it.
type queue struct {
	crowd
	gate *startGate

	mu   sync.Mutex
	sent int
	left map[string]time.Time // by purchaser
}

// next is a vegeta.Targeter.
func (q *queue) next(t *vegeta.Target) error {
	q.mu.Lock()
	n := q.sent
	q.sent++
	q.mu.Unlock()
	purchaser := fmt.Sprintf("%s-%05d", q.run, n)
	query := url.Values{"purchaser": {purchaser}}
	for name, values := range q.query {
		query[name] = values
	}
	base := q.baseURLs[n%len(q.baseURLs)]
	t.Method = http.MethodGet
	t.URL = base + "/product/buy?" + query.Encode()
	if err := q.gate.wait(base); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left[purchaser] = time.Now()
	return nil
}

func (q *queue) leftAt(purchaser string) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.left[purchaser]
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
}

func newStartGate(ctx context.Context, buyers int, client *http.Client) *startGate {
	return &startGate{ctx: ctx, client: client, missing: buyers, opens: make(chan struct{})}
}

func (g *startGate) open() { close(g.opens) }

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
	a := answer{end: r.Timestamp.Add(r.Latency), inside: readSpan(r.Headers.Get(purchase.SpanHeader))}
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
		} else if a.receipt.Amount > 1 {
			a.outcome, a.detail = purchase.Failed, fmt.Sprintf("200 with a receipt for %d units, and 1 was asked for", a.receipt.Amount)
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

// readSpan reads a purchase.SpanHeader; zero when there is none that makes sense.
func readSpan(header string) (span [2]time.Time) {
	from, to, found := strings.Cut(header, "-")
	called, err1 := strconv.ParseInt(from, 10, 64)
	returned, err2 := strconv.ParseInt(to, 10, 64)
	if !found || err1 != nil || err2 != nil || called > returned {
		return span
	}
	return [2]time.Time{time.UnixMicro(called), time.UnixMicro(returned)}
}

// maxOverlap is the most buys that were under way at one moment of a sale: inside
// the shop, if it says of each sale when it was there, else as the buyers saw it.
// Buyers that crowd a shelf which is empty already prove nothing.
//
// The buyers' sight flatters a crowd: whoever has sent and got no answer counts,
// though the service may take one request at a time.
func maxOverlap(answers []answer) int {
	inside := slices.ContainsFunc(answers, answer.saysWhen) && !slices.ContainsFunc(answers, func(a answer) bool {
		return a.outcome == purchase.Sold && !a.saysWhen()
	})
	type edge struct {
		at    time.Time
		delta int
		sale  bool
	}
	edges := make([]edge, 0, 2*len(answers))
	for _, a := range answers {
		start, end := a.start, a.end
		if inside {
			if !a.saysWhen() {
				continue // refused at the door
			}
			start, end = a.inside[0], a.inside[1]
		}
		sale := a.outcome == purchase.Sold
		edges = append(edges, edge{start, 1, sale}, edge{end, -1, sale})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.delta, b.delta)) // at a tie the end comes first
	})
	now, sales, most := 0, 0, 0
	for _, e := range edges {
		now += e.delta
		if e.sale {
			sales += e.delta
		}
		if sales > 0 {
			most = max(most, now)
		}
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
