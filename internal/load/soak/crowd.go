package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/purchase"
)

// The moments of a restock in the middle of a sale.
const (
	before int32 = iota
	beside
	after
)

// A crowd is the buyers of one wave, who ask until they are told to stop. It keeps counts
// and no answers: a wave of minutes has millions.
type crowd struct {
	wave     Wave
	product  string
	shops    Shops
	patience time.Duration // of one request
	meter    *meter
	client   http.Client
	phase    atomic.Int32 // of the restock

	mu      sync.Mutex
	answers Answers
}

func newCrowd(w Wave, product string, shops Shops, patience time.Duration, m *meter) *crowd {
	return &crowd{
		wave: w, product: product, shops: shops, patience: patience, meter: m,
		client: http.Client{Transport: &http.Transport{MaxIdleConns: w.Clients, MaxIdleConnsPerHost: w.Clients, DisableCompression: true}},
	}
}

// pause is how long a buyer waits who was turned away, or found nobody.
const pause = 10 * time.Millisecond

// keep lets as many ask as the wave has at each time, and returns when all are answered.
// When ctx ends, those under way hang up.
func (c *crowd) keep(ctx context.Context, length time.Duration) {
	defer c.client.CloseIdleConnections()
	var buyers sync.WaitGroup
	var stops []chan struct{} // of those who ask now
	defer func() {
		for _, stop := range stops {
			close(stop)
		}
		buyers.Wait()
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for start := time.Now(); ; {
		at := time.Since(start).Seconds() / length.Seconds()
		if at >= 1 {
			return
		}
		want := c.wave.asking(at)
		for len(stops) < want {
			stop, n := make(chan struct{}), len(stops)
			stops = append(stops, stop)
			buyers.Go(func() { c.buyer(ctx, n, stop) })
		}
		for len(stops) > want {
			close(stops[len(stops)-1])
			stops = stops[:len(stops)-1]
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// buyer asks again and again, at the process that is its own.
func (c *crowd) buyer(ctx context.Context, n int, stop <-chan struct{}) {
	query := "/product/buy?" + url.Values{
		"lock": {c.wave.Strategy}, "product": {c.product}, "purchaser": {fmt.Sprintf("soak-%d-%d", c.wave.Number, n)},
	}.Encode()
	for {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		default:
		}
		urls := c.shops.URLs()
		process := n % len(urls)
		if c.wave.kind.Restock {
			process = c.wave.Process
		}
		if c.ask(ctx, urls[process]+query) {
			continue
		}
		select {
		case <-time.After(pause):
		case <-stop:
			return
		}
	}
}

// ask sends one order and counts its answer. served: the buyer has bought, or was told that
// it is sold out.
//
// It is a POST, and has no Idempotency-Key: net/http sends a GET, or a request with a key,
// again by itself when a connection breaks, and one buyer would buy twice.
func (c *crowd) ask(ctx context.Context, order string) (served bool) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, order, nil)
	if err != nil {
		panic(err) // the shop's own address
	}
	since, sent := c.phase.Load(), time.Now()
	status, outcome, detail := c.send(request)
	took, until := time.Since(sent), c.phase.Load()
	if outcome == purchase.Sold {
		c.meter.sold(took)
	} else if status > 0 {
		c.meter.refused()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &c.answers
	switch outcome {
	case purchase.Sold:
		switch {
		case !c.wave.kind.Restock || since == after:
			a.Sold++
		case until == before:
			a.Before++
		default:
			a.Beside++
		}
	case purchase.SoldOut:
		a.SoldOut++
		if !c.wave.kind.Restock || since == after {
			a.Denied++
		}
	case purchase.Busy:
		a.Busy++
	case purchase.LockLost:
		a.LockLost++
	case purchase.Unknown:
		a.Unknown++
	case unreached:
		a.Unreached++
	default:
		a.Failed++
	}
	served = outcome == purchase.Sold || outcome == purchase.SoldOut
	if !served && a.FirstNo == "" {
		a.FirstNo = detail
	}
	return served
}

// unreached is no outcome of a buy: there was no connection to ask on.
const unreached purchase.Outcome = "unreached"

func (c *crowd) send(request *http.Request) (status int, outcome purchase.Outcome, detail string) {
	response, err := c.client.Do(request)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return 0, unreached, err.Error()
		}
		return 0, purchase.Unknown, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return 0, purchase.Unknown, err.Error()
	}
	outcome, _, detail = rush.ReadAnswer(response.StatusCode, body, 1)
	return response.StatusCode, outcome, detail
}
