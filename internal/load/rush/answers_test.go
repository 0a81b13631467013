package rush

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/tier"
)

// A crier is a market. Its function "instead" answers every tenth buyer, or all buyers.
type crier struct {
	market
	all     bool
	instead func(c *crier, w http.ResponseWriter, r *http.Request)

	buys atomic.Int64
}

func (c *crier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isOther := r.URL.Path == "/product/buy" && (c.buys.Add(1)%10 == 0 || c.all)
	if isOther {
		c.instead(c, w, r)
		return
	}
	c.market.ServeHTTP(w, r)
}

// loses sells a unit and closes the connection before the answer.
func loses(c *crier, _ http.ResponseWriter, r *http.Request) {
	c.market.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// reads closes the connection without a sale.
func reads(*crier, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// sellsTwice sells twice to one buyer, and closes the connection before the answer.
func sellsTwice(c *crier, _ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.buy(httptest.NewRecorder(), "apple", r.URL.Query().Get("purchaser"), "")
	c.buy(httptest.NewRecorder(), "apple", r.URL.Query().Get("purchaser"), "")
	c.mu.Unlock()
	panic(http.ErrAbortHandler)
}

// sellsMore sells a unit, puts it back into the stock, and loses the answer.
func sellsMore(c *crier, w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.stock["apple"] = [2]int64{c.stock["apple"][0] + 1, c.stock["apple"][1]}
	c.mu.Unlock()
	loses(c, w, r)
}

// sellsLater takes the unit, closes the connection, and records the sale a second later.
func sellsLater(c *crier, _ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	left := c.stock["apple"]
	if left[0] > 0 {
		c.stock["apple"] = [2]int64{left[0] - 1, left[1]}
		time.AfterFunc(time.Second, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.sold++
			c.sales = append(c.sales, map[string]any{"id": c.sold, "product": "apple", "purchaser": r.URL.Query().Get("purchaser"), "amount": int64(1)})
		})
	}
	c.mu.Unlock()
	panic(http.ErrAbortHandler)
}

// answers returns a handler that sends a status and a body, and sells nothing.
func answers(status int, body string) func(*crier, http.ResponseWriter, *http.Request) {
	return func(_ *crier, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// TestAnswers: a lost answer neither accuses a shop nor hides a break. An error without a fault
// breaks the promise. A server that is down, or a request that the shop does not know, proves
// nothing.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const down = `{"outcome":"failed","detail":"the database is down"}`
	for _, c := range []struct {
		name    string
		instead func(*crier, http.ResponseWriter, *http.Request)
		all     bool
		want    verdict.Verdict
		says    string
	}{
		{"lost after the sale", loses, false, verdict.Holds, "20 answers were lost, and the records agree"},
		{"lost before the sale", reads, false, verdict.Holds, "20 answers were lost"},
		{"lost while the shop is at work", sellsLater, false, verdict.Holds, "20 answers were lost"},
		{"every answer lost", loses, true, verdict.Inconclusive, "100 units asked for, 100 stocked"},
		{"lost, and sold twice", sellsTwice, false, verdict.Leaked, "records belong to buyers"},
		{"lost, and oversold", sellsMore, false, verdict.Oversold, "units sold of 100"},
		{"500", answers(500, ""), false, verdict.Failed, "20 buyers were answered with an error"},
		{"500 to all buyers", answers(500, ""), true, verdict.Failed, "200 buyers were answered with an error"},
		{"502", answers(502, ""), false, verdict.Failed, "20 buyers were answered with an error"},
		{"200 without a receipt", answers(200, "welcome"), false, verdict.Failed, "20 buyers were answered with an error"},
		{"404 to some buyers", answers(404, ""), false, verdict.Failed, "20 buyers were answered with an error"},
		{"404 to all buyers", answers(404, ""), true, verdict.Inconclusive, "no two buys were in flight at once"},
		{"a server is down", answers(503, down), false, verdict.Inconclusive, "20 buyers were neither served nor refused"},
		{"an unknown outcome", answers(504, ""), false, verdict.Inconclusive, "20 buyers were neither served nor refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := Run(t.Context(), rushAt(t, &crier{instead: c.instead, all: c.all}))
			if err != nil || r.Verdict != c.want || !strings.Contains(r.Reason, c.says) {
				t.Errorf("%s (%s), %v; want %s (%s)", r.Verdict, r.Reason, err, c.want, c.says)
			}
		})
	}
}

// reserves takes a unit, gives it back after another buyer was refused, and closes the connection.
func reserves(c *crier, _ http.ResponseWriter, _ *http.Request) {
	move := func(units int64) (isSoldOut bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		left := c.stock["apple"]
		c.stock["apple"] = [2]int64{left[0] + units, left[1]}
		return c.soldOut
	}
	move(-1)
	for deadline := time.Now().Add(10 * time.Second); !move(0) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	move(1)
	panic(http.ErrAbortHandler)
}

// TestReserved: a refusal is correct while buyers that hang up later have reserved the units. If the
// shop still refuses a buyer after that, the units have leaked.
func TestReserved(t *testing.T) {
	t.Parallel()
	for leaks, want := range map[bool]verdict.Verdict{false: verdict.Holds, true: verdict.Leaked} {
		r, err := Run(t.Context(), rushAt(t, &crier{market: market{remembers: leaks}, instead: reserves}))
		if err != nil || r.Verdict != want {
			t.Errorf("leaks %t: %s (%s), %v; want %s", leaks, r.Verdict, r.Reason, err, want)
		}
	}
}

// refusesFirst refuses the first request of each buyer, or all requests.
type refusesFirst struct {
	market
	after   string
	forever bool

	seen sync.Map // purchasers that have asked
}

func (f *refusesFirst) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/product/buy" {
		if _, again := f.seen.LoadOrStore(r.URL.Query().Get("purchaser"), true); !again || f.forever {
			if f.after != "" {
				w.Header().Set("Retry-After", f.after)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	}
	f.market.ServeHTTP(w, r)
}

// TestComeBack: a buyer refused with Retry-After has not given up. A shop that refuses each buyer
// each time proves nothing. A shop that refuses buyers at once without Retry-After stalls them.
func TestComeBack(t *testing.T) {
	tier.Test(t, "buyers come back for seconds")
	t.Parallel()
	for _, c := range []struct {
		name string
		shop *refusesFirst
		want verdict.Verdict
		says string
	}{
		{"once", &refusesFirst{after: "0"}, verdict.Holds, "100 units sold"},
		{"each time", &refusesFirst{after: "0", forever: true}, verdict.Inconclusive, "no two buys were in flight at once"},
		{"no Retry-After", &refusesFirst{}, verdict.Stalled, "told busy before half of the wait"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := rushAt(t, c.shop)
			config.Wait, config.Patience, config.Timeout = 5*time.Second, 5*time.Second, 30*time.Second
			if c.shop.forever {
				config.Timeout = time.Second // the buyers come back until then
			}
			r, err := Run(t.Context(), config)
			if err != nil || r.Verdict != c.want || !strings.Contains(r.Reason, c.says) {
				t.Errorf("%s (%s), %v; want %s (%s)", r.Verdict, r.Reason, err, c.want, c.says)
			}
			if c.want == verdict.Holds && r.Returned < 200 {
				t.Errorf("%d buyers came back, want 200", r.Returned)
			}
		})
	}
}
