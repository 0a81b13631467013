package buyers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/purchase"
)

// service answers each buy by its purchaser's name.
func service(t *testing.T, buy func(w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/product/buy", buy)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func senderTo(urls ...string) Sender {
	return Sender{URLs: urls, Strategy: "any", Product: "apple", Timeout: 20 * time.Second}
}

func named(n int) []Buyer {
	all := make([]Buyer, n)
	for i := range all {
		all[i].Name = fmt.Sprintf("b%d", i)
	}
	return all
}

// TestAtOnce: all buyers are in the shop at once, spread over its processes. The answers are in the order
// of the buyers.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	const n = 8
	var inside sync.WaitGroup
	inside.Add(n)
	var at [2]atomic.Int64
	sell := func(process int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			at[process].Add(1)
			inside.Done()
			inside.Wait() // answers no buyer before all have arrived
			if q := r.URL.Query(); q.Get("lock") != "any" || q.Get("product") != "apple" {
				t.Errorf("the query is %v", q)
			}
			if r.URL.Query().Get("purchaser") == "b3" {
				w.WriteHeader(http.StatusConflict)
				return
			}
			fmt.Fprintf(w, `{"id": 1%s}`, r.URL.Query().Get("purchaser")[1:])
		}
	}
	c := senderTo(service(t, sell(0)), service(t, sell(1)))
	answered := 0
	c.Answered = func(Answer) { answered++ }
	answers := c.AtOnce(t.Context(), named(n))
	for i, a := range answers {
		want, id := purchase.Sold, int64(10+i)
		if i == 3 {
			want, id = purchase.SoldOut, 0
		}
		if a.Purchaser != fmt.Sprintf("b%d", i) || a.Outcome != want || a.ID != id {
			t.Errorf("answer %d: %s of %s, record %d; want %s, record %d", i, a.Outcome, a.Purchaser, a.ID, want, id)
		}
		if a.Start.After(a.Sent) || a.Sent.After(a.AnswerBegan) || a.AnswerBegan.After(a.End) || a.Start.IsZero() {
			t.Errorf("answer %d: left at %v, out at %v, answered from %v to %v", i, a.Start, a.Sent, a.AnswerBegan, a.End)
		}
	}
	if len(answers) != n || answered != n || at[0].Load() != n/2 || at[1].Load() != n/2 {
		t.Errorf("%d answers, %d reported, %d and %d at the processes", len(answers), answered, at[0].Load(), at[1].Load())
	}
}

// TestHangUp: a buyer that hangs up is Unknown, and one that is answered first
// has not hung up.
func TestHangUp(t *testing.T) {
	t.Parallel()
	url := service(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("purchaser") == "gone" {
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"id": 1}`)
	})
	answers := senderTo(url).AtOnce(t.Context(), []Buyer{{Name: "gone", HangUp: time.Millisecond}, {Name: "answered", HangUp: time.Minute}})
	if a := answers[0]; a.Outcome != purchase.Unknown || !a.HungUp || a.Sent.IsZero() || !a.AnswerBegan.IsZero() {
		t.Errorf("who hung up: %+v", a)
	}
	if a := answers[1]; a.Outcome != purchase.Sold || a.HungUp {
		t.Errorf("who was answered: %+v", a)
	}
}

// TestRedirect: the time-out also applies to a redirected request, if its answer never begins or never
// ends. The request ends with the context.
func TestRedirect(t *testing.T) {
	t.Parallel()
	url := service(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("redirected") == "" {
			http.Redirect(w, r, r.URL.String()+"&redirected=yes", http.StatusTemporaryRedirect)
			return
		}
		if r.URL.Query().Get("purchaser") == "b1" {
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	})
	c := senderTo(url)
	c.Timeout = 500 * time.Millisecond
	for i, a := range c.AtOnce(t.Context(), named(2)) {
		if a.Outcome == purchase.Sold || a.Detail == "" {
			t.Errorf("buyer %d: %+v; want it timed out", i, a)
		}
	}
	c.Timeout = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	for i, a := range c.AtOnce(ctx, named(2)) {
		if a.Outcome == purchase.Sold {
			t.Errorf("buyer %d: %+v; want it interrupted", i, a)
		}
	}
}

// TestAtOnceEnds: when the context ends, waiting buyers hang up, and buyers that were not sent are
// Unknown.
func TestAtOnceEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	url := service(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	for i, a := range senderTo(url).AtOnce(ctx, named(4)) {
		if a.Outcome != purchase.Unknown || a.Purchaser != fmt.Sprintf("b%d", i) {
			t.Errorf("buyer %d: %+v", i, a)
		}
	}
	for _, a := range senderTo(url).AtOnce(ctx, named(4)) { // ctx has ended
		if a.Outcome != purchase.Unknown || !a.Sent.IsZero() {
			t.Errorf("sent after the end: %+v", a)
		}
	}
}

// TestKeep: a buyer asks again when it is answered, under another name.
func TestKeep(t *testing.T) {
	t.Parallel()
	var now, most, all atomic.Int64
	url := service(t, func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		fmt.Fprintf(w, `{"id": %d}`, all.Add(1))
	})
	var answers []Answer
	sender := senderTo(url)
	sender.Answered = func(a Answer) { answers = append(answers, a) }
	sender.Keep(t.Context(), Loop{
		Duration: 100 * time.Millisecond, Askers: 3, Buyer: func(n int64) Buyer { return Buyer{Name: fmt.Sprint("again-", n)} },
	})
	if most.Load() > 3 || len(answers) < 4 || int64(len(answers)) != all.Load() {
		t.Errorf("%d answers to %d requests, at most %d at once; want more answers than buyers, 3 at once", len(answers), all.Load(), most.Load())
	}
	names := map[string]bool{}
	for n, a := range answers {
		if a.Outcome != purchase.Sold || names[a.Purchaser] {
			t.Errorf("answer %d: %+v", n, a)
		}
		names[a.Purchaser] = true
	}
}

// TestDial: the caller may provide the dial function. Before a burst begins, each of its buyers has an open
// connection. Connections that no buyer has used are closed, since the service may close them before the next
// burst.
func TestDial(t *testing.T) {
	t.Parallel()
	const n = 50
	var asked atomic.Int64
	url := service(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{"id": 1}`)
	})
	c := senderTo(url)
	var dialed atomic.Int64
	c.Client = NewClient(func(ctx context.Context, network, address string) (net.Conn, error) {
		if asked.Load() > 0 {
			t.Error("a connection is opened after the burst began")
		}
		dialed.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	})
	defer c.Client.Close()
	c.Client.reserve.fill(t.Context(), url, n+1) // one more than the first burst uses
	for burst := range 3 {
		asked.Store(0)
		if a := c.AtOnce(t.Context(), named(n)); a[n-1].Outcome != purchase.Sold || burst == 0 && dialed.Load() != n+1 {
			t.Errorf("burst %d: %+v over %d connections, want %d", burst, a[n-1], dialed.Load(), n+1)
		}
		for address, unused := range c.Client.reserve.idle {
			if len(unused) > 0 {
				t.Errorf("%d unused connections to %s are kept", len(unused), address)
			}
		}
	}
	if dialed.Load() >= 3*n {
		t.Error("no burst uses a connection of the one before")
	}
}

// TestNobodyThere: without a service every buyer is Unknown, and unreached.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	for _, a := range senderTo("http://127.0.0.1:1").AtOnce(t.Context(), named(2)) {
		if a.Outcome != purchase.Unknown || a.Detail == "" || a.Status != 0 || !a.Unreached {
			t.Errorf("%+v", a)
		}
	}
}

func TestReadSpan(t *testing.T) {
	for header, want := range map[string]bool{"": false, "7": false, "x-9": false, "9-7": false, "7-9": true} {
		if got := readSpan(header); got[0].IsZero() == want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

func TestReadAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		units  int64
		status int
		body   string
		want   purchase.Outcome
	}{
		{"sold", 1, 200, `{"id":1,"purchaser":"a","amount":1}`, purchase.Sold},
		{"two units for one", 0, 200, `{"id":1,"purchaser":"a","amount":2}`, purchase.Failed},
		{"two units for two", 2, 200, `{"id":1,"amount":2}`, purchase.Sold},
		{"one unit for two", 2, 200, `{"id":1,"amount":1}`, purchase.Failed},
		{"an empty receipt", 1, 200, `{}`, purchase.Failed},
		{"200 around something else", 1, 200, `thanks`, purchase.Failed},
		{"the problem's word wins", 1, 409, `{"outcome":"lock_lost"}`, purchase.LockLost},
		{"a word that is none", 1, 409, `{"outcome":"magic"}`, purchase.SoldOut},
		{"status alone, sold out", 1, 409, ``, purchase.SoldOut},
		{"status alone, busy", 1, 429, ``, purchase.Busy},
		{"status alone, unknown", 1, 504, ``, purchase.Unknown},
		{"bad request", 1, 400, ``, purchase.Failed},
	} {
		expect.Equal(t, AnswerOf(Exchange{Status: c.status, Body: []byte(c.body)}, Buyer{Units: c.units}).Outcome, c.want, c.name)
	}
	expect.Equal(t, AnswerOf(Exchange{Err: errors.New("broken pipe")}, Buyer{}).Outcome, purchase.Unknown, "no answer")
}
