package purchase

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/expect"
)

// unwanted is the argument of RememberReturns for a connection that no other client needs.
func unwanted(net.Conn) (<-chan struct{}, func()) { return nil, func() {} }

// TestHoldUp: the shop delays the next refusal of a client that comes back too early, and of no
// other client.
func TestHoldUp(t *testing.T) {
	const wait, told = 4 * time.Second, 3 * time.Second
	k := &Counter{Wait: wait}
	refusal := error(&Overloaded{RetryAfter: told})
	for name, c := range map[string]struct {
		after     time.Duration // time since the first refusal
		purchaser string
		err       error
		least     time.Duration
		most      time.Duration
	}{
		"at once":             {0, "ann", refusal, wait / 4, wait / 2},
		"a little early":      {told - time.Second/2, "ann", refusal, time.Second / 2, time.Second / 2},
		"in time":             {told, "ann", refusal, 0, 0},
		"another buyer":       {0, "bob", refusal, 0, 0},
		"sold":                {0, "ann", nil, 0, 0},
		"busy, and let in":    {0, "ann", ErrBusy, 0, 0},
		"nobody has told one": {0, "", refusal, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := RememberReturns(unwanted)(t.Context(), nil)
				took := func(purchaser string, err error) time.Duration {
					start := time.Now()
					k.holdUp(ctx, purchaser, err)
					return time.Since(start)
				}
				expect.Equal(t, took("ann", refusal), 0, "the first refusal")
				time.Sleep(c.after)
				if got := took(c.purchaser, c.err); got < c.least || got > c.most {
					t.Errorf("held up for %s, want %s to %s", got, c.least, c.most)
				}
			})
		})
	}
}

// TestHoldUpEnds: the delay ends when the client disconnects. Without RememberReturns there is no
// delay.
func TestHoldUpEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &Counter{Wait: 4 * time.Second}
		refusal := &Overloaded{RetryAfter: time.Second}
		gone, hangUp := context.WithCancel(RememberReturns(unwanted)(t.Context(), nil))
		hangUp()
		start := time.Now()
		for _, ctx := range []context.Context{gone, t.Context()} {
			k.holdUp(ctx, "ann", refusal)
			k.holdUp(ctx, "ann", refusal)
		}
		expect.Equal(t, time.Since(start), 0, "held up")
	})
}

// TestHoldUpWanted: a delayed client hears at once that it is refused when its connection is
// needed.
func TestHoldUpWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &Counter{Wait: time.Minute}
		refusal := &Overloaded{RetryAfter: time.Minute}
		wanted := make(chan struct{})
		ctx := RememberReturns(func(net.Conn) (<-chan struct{}, func()) { return wanted, func() {} })(t.Context(), nil)
		time.AfterFunc(time.Second, func() { close(wanted) })
		start := time.Now()
		first, again := k.holdUp(ctx, "ann", refusal), k.holdUp(ctx, "ann", refusal)
		if took := time.Since(start); took != time.Second || first || !again {
			t.Errorf("%v, and then %v after %s; want false, and true after a second", first, again, took)
		}
	})
}

type full struct{}

func (full) Buy(context.Context, Order) (Receipt, error) {
	return Receipt{}, &Overloaded{RetryAfter: 10 * time.Second}
}

type blind struct{}

func (blind) Called(string, Order)                                           {}
func (blind) Returned(string, Order, Receipt, Outcome, time.Time, time.Time) {}
func (blind) TurnedAway(string, Order)                                       {}

// TestHoldUpStrangers: two requests without a name arrive over one connection of a proxy. They may
// belong to different buyers, so neither is delayed.
func TestHoldUpStrangers(t *testing.T) {
	for name, c := range map[string]struct {
		query, header string
		held          bool
	}{
		"one client":                {"", "", true},
		"X-Forwarded-For":           {"", "X-Forwarded-For", false},
		"Forwarded":                 {"", "Forwarded", false},
		"Via":                       {"", "Via", false},
		"by name through a proxy":   {"?purchaser=ann", "X-Forwarded-For", true},
		"by name without any proxy": {"?purchaser=ann", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &Counter{
					Strategies: map[string]Strategy{"full": full{}}, Resolve: func(string) string { return "full" },
					Wait: 4 * time.Second, Down: func(context.Context, string) error { return nil }, Seats: make(chan struct{}, 1), Watch: blind{},
				}
				r := gin.New()
				k.Routes(r)
				ctx := RememberReturns(unwanted)(t.Context(), nil) // both requests use this connection
				start := time.Now()
				for range 2 {
					request := httptest.NewRequest(http.MethodPost, "/product/buy"+c.query, nil).WithContext(ctx)
					if c.header != "" {
						request.Header.Set(c.header, "for=192.0.2.1")
					}
					answer := httptest.NewRecorder()
					r.ServeHTTP(answer, request)
					if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Connection") != "" {
						t.Errorf("%d, Connection %q", answer.Code, answer.Header().Get("Connection"))
					}
				}
				if took := time.Since(start); took > 0 != c.held {
					t.Errorf("two are refused within %s; want that one is held up: %v", took, c.held)
				}
			})
		})
	}
}
