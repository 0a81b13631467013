package buyers

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/purchase"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Second)
	date := func(at time.Time) string { return at.Format(http.TimeFormat) }
	for _, c := range []struct {
		after, date string
		want        time.Duration
		ok          bool
	}{
		{"2", "", 2 * time.Second, true},
		{"0", "", leastAway, true},
		{date(now.Add(3 * time.Second)), "", 3 * time.Second, true},
		{date(now.Add(time.Hour + 3*time.Second)), date(now.Add(time.Hour)), 3 * time.Second, true}, // the server's clock is an hour ahead
		{date(now.Add(-time.Hour)), "", leastAway, true},
		{"-1", "", 0, false},
		{"1.5", "", 0, false},
		{"soon", "", 0, false},
		{"", "", 0, false},
	} {
		h := http.Header{"Retry-After": {c.after}, "Date": {c.date}}
		if got, ok := retryAfter(h, now); got != c.want || ok != c.ok {
			t.Errorf("%+v: %s, %v", c, got, ok)
		}
	}
}

// TestReturns: a refused buyer comes back after Retry-After, not before, and under the same name.
// It stays away without a Retry-After, without patience, after half of its patience inside the
// shop, and when the shop serves no buyer.
func TestReturns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		busy     int64 // number of requests that the shop refuses
		after    string
		inside   time.Duration
		patience time.Duration
		timeout  time.Duration
		outcome  purchase.Outcome
		returns  int
		least    time.Duration // minimum time from the first request to the last answer
		isPutOff bool
	}{
		{name: "refused twice", busy: 2, after: "0", patience: time.Minute, outcome: purchase.Sold, returns: 2, least: 2 * leastAway},
		{name: "a second", busy: 1, after: "1", patience: time.Minute, outcome: purchase.Sold, returns: 1, least: time.Second},
		{name: "no Retry-After", busy: 1, patience: time.Minute, outcome: purchase.Busy},
		{name: "no patience", busy: 1, after: "0", outcome: purchase.Busy},
		{name: "waited inside for long", busy: 1, after: "0", inside: 60 * time.Millisecond, patience: 100 * time.Millisecond, outcome: purchase.Busy},
		{name: "no buyer is served", busy: 1 << 60, after: "0", patience: time.Minute, timeout: time.Second, outcome: purchase.Busy, least: 800 * time.Millisecond, isPutOff: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			s := senderTo(service(t, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(c.inside)
				expect.Equal(t, r.URL.Query().Get("purchaser"), "ann", r.URL)
				if asked.Add(1) > c.busy {
					fmt.Fprint(w, `{"id": 1}`)
					return
				}
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			s.Patience = c.patience
			if c.timeout > 0 {
				s.Timeout = c.timeout
			}
			answered := 0
			s.Answered = func(Answer) { answered++ }
			a := s.One(t.Context(), Buyer{Name: "ann"})
			if a.Outcome != c.outcome || a.IsDeferred != c.isPutOff || !c.isPutOff && a.Returns != c.returns || a.End.Sub(a.First) < c.least || answered != 1 {
				t.Errorf("%s after %s, %d times back, put off %v, %d answers; want %+v", a.Outcome, a.End.Sub(a.First), a.Returns, a.IsDeferred, answered, c)
			}
			expect.Equal(t, int(asked.Load()), a.Returns+1, "requests")
		})
	}
}

// TestKeepReturns: an asker whose Retry-After ends after the load stays away, and Keep does not
// wait for it.
func TestKeepReturns(t *testing.T) {
	t.Parallel()
	s := senderTo(service(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "10")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	s.Patience = time.Minute
	var all []Answer
	s.Answered = func(a Answer) { all = append(all, a) }
	start := time.Now()
	s.Keep(t.Context(), Loop{Duration: 200 * time.Millisecond, Askers: 3, Buyer: func(int64) Buyer { return Buyer{Name: "b"} }})
	if took := time.Since(start); took > 8*time.Second || len(all) != 3 || !all[0].IsDeferred {
		t.Errorf("%d answers in %s: %+v", len(all), took, all)
	}
}
