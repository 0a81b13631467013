package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/rush"
)

// A visitor is one request for one unit.
type visitor struct {
	name     string
	key      string        // Idempotency-Key; "" for none
	patience time.Duration // from when its request is out until it hangs up; 0: it stays
}

// A visit is what came of it. The request was out at out, and the answer began
// at begun; both are zero when that was never seen.
type visit struct {
	fault.Answer
	out, begun time.Time
	gone       bool // it hung up on a request that was out and not answered
	status     int
}

// visits sends all visitors at once, each on a connection that is open already,
// and waits for the last.
func (t *Target) visits(ctx context.Context, strategy string, visitors []visitor, dial dialer) []visit {
	transport := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: len(visitors)}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: t.Timeout}
	var here, all sync.WaitGroup
	here.Add(len(visitors))
	came := make([]visit, len(visitors))
	for i, v := range visitors {
		all.Go(func() {
			t.connect(ctx, client)
			here.Done()
			here.Wait()
			came[i] = t.visit(ctx, client, strategy, v)
		})
	}
	all.Wait()
	return came
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// connect leaves an open connection in the pool, whatever the answer is.
func (t *Target) connect(ctx context.Context, client *http.Client) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.BaseURL+"/healthz", nil)
	if err != nil {
		return
	}
	if response, err := client.Do(request); err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
		_ = response.Body.Close()
	}
}

// visit asks for one unit.
func (t *Target) visit(ctx context.Context, client *http.Client, strategy string, who visitor) visit {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	var mu sync.Mutex // the connection's goroutines report when they like, also after the answer
	var out, begun time.Time
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			mu.Lock()
			defer mu.Unlock()
			if info.Err == nil && out.IsZero() {
				out = time.Now()
				if who.patience > 0 {
					time.AfterFunc(who.patience, hangUp)
				}
			}
		},
		GotFirstResponseByte: func() {
			mu.Lock()
			defer mu.Unlock()
			begun = time.Now()
		},
	})
	start := time.Now()
	status, text, err := t.ask(ctx, client, strategy, who)
	mu.Lock()
	v := visit{out: out, begun: begun, status: status}
	mu.Unlock()
	v.Purchaser, v.Start, v.End = who.name, start, time.Now()
	if err != nil {
		v.Outcome, v.Detail = purchase.Unknown, err.Error() // the sale may have been made
		v.gone = who.patience > 0 && ctx.Err() != nil && !v.out.IsZero() && v.begun.IsZero()
		return v
	}
	v.Outcome, v.ID, v.Detail = rush.ReadAnswer(status, text)
	return v
}

// ask is GET, which every service has; under an Idempotency-Key it is POST, with
// the order in the query and as JSON, as a service may read either.
func (t *Target) ask(ctx context.Context, client *http.Client, strategy string, who visitor) (status int, text []byte, err error) {
	query := url.Values{"lock": {strategy}, "product": {t.Product}, "purchaser": {who.name}}
	method, body := http.MethodGet, []byte(nil)
	if who.key != "" {
		method = http.MethodPost
		if body, err = json.Marshal(map[string]any{"lock": strategy, "product": t.Product, "purchaser": who.name, "amount": 1}); err != nil {
			return 0, nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, t.BaseURL+"/product/buy?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if who.key != "" {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", who.key)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, 1<<16))
	return response.StatusCode, text, err
}
