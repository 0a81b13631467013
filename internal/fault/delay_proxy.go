package fault

import (
	"context"
	"net"
	"net/url"
	"time"

	"github.com/oversell/oversell/internal/testbed"
)

// A DelayProxy delays the traffic to a service in both directions. It is for the
// buyers of a target; a shop's own links have delays of their own.
type DelayProxy struct{ link *testbed.Link }

// NewDelayProxy leads to the host of a service's address. by and jitter are for each
// direction, so that no answer comes within 2*(by-jitter).
func NewDelayProxy(service string, by, jitter time.Duration) (*DelayProxy, error) {
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
	if err := l.DelayBothWays(by, jitter); err != nil {
		l.Cut()
		return nil, err
	}
	return &DelayProxy{link: l}, nil
}

// Dial connects through the proxy whatever the address: the request keeps its host.
func (w *DelayProxy) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", w.link.Addr)
}

// Close ends the connections.
func (w *DelayProxy) Close() { w.link.Cut() }

// DelayAnswers puts a proxy before a server, host:port, that holds back each of its answers
// by so long, in whole milliseconds. It returns where to connect instead.
func DelayAnswers(server string, by time.Duration) (addr string, closeProxy func(), err error) {
	l, err := testbed.NewLink(server)
	if err != nil {
		return "", nil, err
	}
	if err := l.Delay(by, 0); err != nil {
		l.Cut()
		return "", nil, err
	}
	return l.Addr, l.Cut, nil
}
