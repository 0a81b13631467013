package rush

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestRestocks: a service that still answers "sold out" after a restock breaks, even if only one of its
// processes does. A service that forgets this answer keeps its promise.
func TestRestocks(t *testing.T) {
	for _, c := range []struct {
		name              string
		remembers, before bool // before: the service was sold out before the test
		first, want       verdict.Verdict
	}{
		{"forgets", false, true, verdict.Holds, verdict.Holds},
		{"remembers", true, true, verdict.Holds, verdict.Leaked},
		{"remembers from the first of two restocks", true, false, verdict.Holds, verdict.Leaked},
		{"broke before", true, true, verdict.Oversold, verdict.Oversold},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := rushAt(t, &market{remembers: c.remembers, soldOut: c.before})
			config.BaseURLs = append(config.BaseURLs, config.BaseURLs...)
			config.Sizes = []int64{11} // more than the ten units of a restock
			r, err := Restocks(t.Context(), config, Result{Verdict: c.first}, 1)
			if err != nil || r.Verdict != c.want {
				t.Fatalf("%s, %v; want %s", r.Verdict, err, c.want)
			}
			expect.Equal(t, strings.HasPrefix(r.Reason, "after a restock of 10 units: 10 units are left"), c.first == verdict.Holds && c.want != c.first, r.Reason)
		})
	}
}

// TestRestocksAfterSteadyLoad: a few buyers that asked repeatedly sell out a restock, too.
func TestRestocksAfterSteadyLoad(t *testing.T) {
	config := rushAt(t, &market{})
	config.Buyers, config.Stock, config.Duration = 4, 20, time.Second
	if r, err := Restocks(t.Context(), config, Result{Verdict: verdict.Holds}, 1); err != nil || r.Verdict != verdict.Holds {
		t.Errorf("%s (%s), %v; want holds", r.Verdict, r.Reason, err)
	}
}

// TestSoldOut: a burst has sold its stock if it holds, or if it sells every unit without overlap.
func TestSoldOut(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Result
		want bool
	}{
		{"holds", Result{Verdict: verdict.Holds, MaxOverlap: 2}, true},
		{"one by one", Result{Verdict: verdict.Inconclusive, MaxOverlap: 1}, true},
		{"one by one, and something is left", Result{Verdict: verdict.Inconclusive, MaxOverlap: 1, Leftover: 1}, false},
		{"one by one, and one not served", Result{Verdict: verdict.Inconclusive, MaxOverlap: 1, unserved: 1}, false},
		{"some gave up", Result{Verdict: verdict.Inconclusive, MaxOverlap: 2}, false},
		{"stalled", Result{Verdict: verdict.Stalled, MaxOverlap: 1}, false},
	} {
		expect.Equal(t, c.r.soldOut(), c.want, c.name)
	}
}

// TestRestocksWithUnitsLeft: a service that keeps units across a restock sells more than its
// stock.
func TestRestocksWithUnitsLeft(t *testing.T) {
	for keeps, want := range map[bool]verdict.Verdict{false: verdict.Holds, true: verdict.Oversold} {
		config := rushAt(t, &market{keeps: keeps})
		r, err := Restocks(t.Context(), config, Result{Verdict: verdict.Holds}, 1)
		if err != nil || r.Verdict != want {
			t.Errorf("keeps %v: %s (%s), %v; want %s", keeps, r.Verdict, r.Reason, err, want)
		}
	}
}

// A late is a market in which a buyer writes the stock that it has read, even after a restock. Its buyers buy
// one after the other.
type late struct {
	market
	section sync.Mutex
}

func (l *late) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/product/buy" {
		l.market.ServeHTTP(w, r)
		return
	}
	l.section.Lock()
	defer l.section.Unlock()
	l.mu.Lock()
	read := l.stock["apple"]
	l.mu.Unlock()
	time.Sleep(5 * time.Millisecond)
	l.mu.Lock()
	l.stock["apple"] = read
	l.mu.Unlock()
	l.market.ServeHTTP(w, r)
}

// TestRestocksWithBuyersInside: only a restock with buyers inside shows that one of them writes the stock from
// before the restock.
func TestRestocksWithBuyersInside(t *testing.T) {
	for inside, want := range map[Inside]verdict.Verdict{NoBuyers: verdict.Holds, OwnBuyers: verdict.Leaked, AllBuyers: verdict.Leaked} {
		config := rushAt(t, &late{})
		config.Inside = inside
		r, err := Restocks(t.Context(), config, Result{Verdict: verdict.Holds}, 1)
		if err != nil || r.Verdict != want || strings.HasPrefix(r.Reason, "during a restock of 10 units: ") != (want == verdict.Leaked) {
			t.Errorf("inside %d: %s (%s), %v; want %s", inside, r.Verdict, r.Reason, err, want)
		}
	}
}

// refusing is a market that refuses restocks, or answers no buyer after one, while buyers are inside.
type refusing struct {
	market
	refuses  bool
	restocks atomic.Int64
}

func (f *refusing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var asked struct{ Amount int64 }
		_ = json.Unmarshal(body, &asked)
		f.restocks.Add(1)
		if f.refuses && asked.Amount > againStock && asked.Amount < metStock {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	case r.URL.Path == "/product/buy" && !f.refuses && f.restocks.Load() > 1:
		<-r.Context().Done()
		return
	}
	f.market.ServeHTTP(w, r)
}

// TestRestocksThatMeetNone: a service that answers no buyer after a restock is stalled if every server runs. A
// service that refuses each restock because of its buyers proves nothing.
func TestRestocksThatMeetNone(t *testing.T) {
	for _, c := range []struct {
		name             string
		refuses, healthy bool
		want             verdict.Verdict
		says             string
	}{
		{"silent", false, true, verdict.Stalled, "although every server runs"},
		{"silent, perhaps without a server", false, false, verdict.Inconclusive, "not known whether every server runs"},
		{"refused", true, true, verdict.Inconclusive, "no restock met a buyer: the service refused all 10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			config := rushAt(t, &refusing{refuses: c.refuses})
			config.Inside, config.Healthy = AllBuyers, c.healthy
			if !c.refuses {
				config.Timeout = time.Second
			}
			r, err := Restocks(ctx, config, Result{Verdict: verdict.Holds}, 1)
			if err != nil || r.Verdict != c.want || !strings.HasPrefix(r.Reason, "during a restock of 10 units: ") || !strings.Contains(r.Reason, c.says) {
				t.Errorf("%s (%s), %v; want %s (%s)", r.Verdict, r.Reason, err, c.want, c.says)
			}
			expect.Equal(t, r.Disturbed(), "")
		})
	}
}

// TestStalledOnce: a burst that stalled once is not accepted and not repeated, with or without overlap.
func TestStalledOnce(t *testing.T) {
	for _, overlap := range []int{1, 2} {
		sent := 0
		r, err := verdict.Confirm(func() (Result, error) {
			sent++
			if sent == 1 {
				return Result{Verdict: verdict.Stalled, MaxOverlap: overlap, Crowd: 2}, nil
			}
			return Result{Verdict: verdict.Holds, MaxOverlap: 2, Crowd: 2}, nil
		})
		if err != nil || r.Verdict != verdict.Inconclusive || sent != 2 {
			t.Errorf("overlap %d: %s, %d crowds, %v; want inconclusive, 2 crowds", overlap, r.Verdict, sent, err)
		}
	}
}

// TestRestockError: a service that cannot restock breaks its promise, before the first crowd and
// after it. If it names an unavailable server (503), nothing is known about the promise.
func TestRestockError(t *testing.T) {
	for status, want := range map[int]verdict.Verdict{http.StatusInternalServerError: verdict.Failed, http.StatusServiceUnavailable: ""} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		defer service.Close()
		config := Config{BaseURLs: []string{service.URL}, Shelf: Target{BaseURL: service.URL}, Strategy: "any", Product: "apple", Stock: 10, Buyers: 20}
		for name, run := range map[string]func() (Result, error){
			"before": func() (Result, error) { return Run(t.Context(), config) },
			"keyed":  func() (Result, error) { return RunKeyed(t.Context(), config, nil) },
			"after":  func() (Result, error) { return Restocks(t.Context(), config, Result{Verdict: verdict.Holds}, 1) },
		} {
			r, err := run()
			if (err == nil) != (want == verdict.Failed) || err == nil && r.Verdict != want || err != nil && !errors.As(err, new(*TimeoutError)) {
				t.Errorf("%d, %s: %s, %v; want %q", status, name, r.Verdict, err, want)
			}
		}
	}
}
