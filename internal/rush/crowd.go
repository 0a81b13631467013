package rush

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

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/purchase"
)

// An answer is what one buyer got. Its times are the buyer's: from leaving the
// gate to the last byte.
type answer struct {
	audit.Answer
	inside [2]time.Time // as the shop saw it, where it says so; else zero
	detail string       // of anything that is no sale
}

func (a answer) saysWhen() bool { return !a.inside[0].IsZero() }

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
		a := answerOf(r)
		a.Start = line.leftAt(a.Purchaser) // the wait for the others is not the shop's
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

// answerOf maps a response to what the buyer was told. No response at all is
// Unknown: the sale may have been made. r.URL says who asked, whatever the
// receipt says.
func answerOf(r *vegeta.Result) answer {
	a := answer{inside: readSpan(r.Headers.Get(purchase.SpanHeader))}
	a.End = r.Timestamp.Add(r.Latency)
	if u, err := url.Parse(r.URL); err == nil {
		a.Purchaser = u.Query().Get("purchaser")
	}
	if r.Code == 0 {
		a.Outcome, a.detail = purchase.Unknown, r.Error
		return a
	}
	a.Outcome, a.ID, a.detail = ReadAnswer(int(r.Code), r.Body)
	return a
}

// ReadAnswer reads the answer to a buy of one unit: by the problem's own word, or by
// the status where the service has none. id is that of a sale's record, detail
// says what is not a sale.
func ReadAnswer(status int, body []byte) (outcome purchase.Outcome, id int64, detail string) {
	if status == http.StatusOK {
		var receipt struct {
			ID     int64 `json:"id"`
			Amount int64 `json:"amount"`
		}
		switch err := json.Unmarshal(body, &receipt); {
		case err != nil:
			return purchase.Failed, 0, "200 with a body that is no receipt: " + err.Error()
		case receipt.ID <= 0:
			return purchase.Failed, 0, "200 with a receipt that has no id"
		case receipt.Amount > 1:
			return purchase.Failed, 0, fmt.Sprintf("200 with a receipt for %d units, and 1 was asked for", receipt.Amount)
		}
		return purchase.Sold, receipt.ID, ""
	}
	var problem struct {
		Outcome purchase.Outcome `json:"outcome"`
		Detail  string           `json:"detail"`
	}
	if json.Unmarshal(body, &problem) != nil || !slices.Contains(purchase.Outcomes(), problem.Outcome) {
		problem.Outcome = outcomeOfStatus(status)
	}
	return problem.Outcome, 0, fmt.Sprintf("%d %s", status, cmp.Or(problem.Detail, http.StatusText(status)))
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

// maxOverlap is audit.Overlap: inside the shop, if it says of each sale when it
// was there, else as the buyers saw it.
//
// The buyers' sight flatters a crowd: whoever has sent and got no answer counts,
// though the service may take one request at a time.
func maxOverlap(answers []answer) int {
	inside := slices.ContainsFunc(answers, answer.saysWhen) && !slices.ContainsFunc(answers, func(a answer) bool {
		return a.Outcome == purchase.Sold && !a.saysWhen()
	})
	if !inside {
		return audit.Overlap(plain(answers))
	}
	var within []audit.Answer
	for _, a := range answers {
		if a.saysWhen() { // else it was refused at the door
			a.Start, a.End = a.inside[0], a.inside[1]
			within = append(within, a.Answer)
		}
	}
	return audit.Overlap(within)
}

// plain is the answers as the judge knows them.
func plain(answers []answer) []audit.Answer {
	all := make([]audit.Answer, len(answers))
	for i, a := range answers {
		all[i] = a.Answer
	}
	return all
}
