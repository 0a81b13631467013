package fault

import (
	"context"
	"net"
	"net/url"
	"time"
)

// A SlowWay is a connection to a service that holds back what it carries, for
// buyers and not for shops: a proxy that delays both directions.
type SlowWay struct{ link *link }

// NewSlowWay leads to the host of a service's address. by and jitter are for
// each direction, so that nobody is answered within 2*(by-jitter).
func NewSlowWay(service string, by, jitter time.Duration) (*SlowWay, error) {
	u, err := url.Parse(service)
	if err != nil {
		return nil, err
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	l, err := newToxics().link(host, "")
	if err != nil {
		return nil, err
	}
	for _, stream := range []string{"upstream", "downstream"} {
		delay := map[string]int64{"latency": by.Milliseconds(), "jitter": jitter.Milliseconds()}
		if err := l.poison("late-"+stream, "latency", stream, delay); err != nil {
			l.cut()
			return nil, err
		}
	}
	return &SlowWay{link: l}, nil
}

// Dial goes the slow way whatever the address: the request keeps its host.
func (w *SlowWay) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", w.link.addr)
}

// Close ends the connections.
func (w *SlowWay) Close() { w.link.cut() }
