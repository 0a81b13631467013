package verify

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/testbed"
)

func (t *Target) latency(ctx context.Context, c *Cell) error {
	slow, err := slowLink(t.BaseURL)
	if err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	defer slow.Cut()
	if err := t.restock(ctx, targetStock); err != nil {
		return err
	}
	crowd := t.crowd(c.Strategy)
	crowd.Client = buyers.NewClient(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", slow.Addr) // the Host header of the request stays the same
	})
	defer crowd.Client.Close()
	came, err := send(ctx, crowd, t.buyers("late", targetBuyers))
	if err != nil {
		return err
	}
	const least = 2 * (way - wayJitter)
	quickest := time.Duration(-1)
	for _, v := range came {
		if took := v.AnswerBegan.Sub(v.Start); !v.AnswerBegan.IsZero() && (quickest < 0 || took < quickest) {
			quickest = took
		}
	}
	facts := fault.Facts{
		Answers: came, Last: came,
		Proof: fmt.Sprintf("the slow way held every buyer back for at least %s", quickest.Round(time.Millisecond)),
	}
	if quickest < least {
		facts.Missed = fmt.Sprintf("a buyer was answered within %s: the slow way did not hold it back", quickest)
	}
	return t.judge(ctx, c, facts, targetStock)
}

// slowLink returns a proxy to the host of a service. The proxy delays the traffic in both directions, so that
// no answer comes within 2*(way-wayJitter).
func slowLink(service string) (*testbed.Link, error) {
	u, err := url.Parse(service)
	if err != nil {
		return nil, err
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	l, err := testbed.NewLink(host)
	if err != nil {
		return nil, err
	}
	if err := l.DelayBothWays(way, wayJitter); err != nil {
		l.Cut()
		return nil, err
	}
	return l, nil
}
