package fault

import (
	"context"
	"net"
	"net/url"
	"time"
)

// A DelayProxy delays the traffic to a service in both directions. It is for the
// buyers of a target; a shop's own links have delays of their own.
type DelayProxy struct{ link *link }

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
	l, err := newProxies().link(host, "")
	if err != nil {
		return nil, err
	}
	for _, stream := range []string{"upstream", "downstream"} {
		delay := map[string]int64{"latency": by.Milliseconds(), "jitter": jitter.Milliseconds()}
		if err := l.addToxic("late-"+stream, "latency", stream, delay); err != nil {
			l.cut()
			return nil, err
		}
	}
	return &DelayProxy{link: l}, nil
}

// Dial connects through the proxy whatever the address: the request keeps its host.
func (w *DelayProxy) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", w.link.addr)
}

// Close ends the connections.
func (w *DelayProxy) Close() { w.link.cut() }

// DelayAnswers puts a proxy before a server, host:port, that holds back each of its answers
// by so long, in whole milliseconds. It returns where to connect instead.
func DelayAnswers(server string, by time.Duration) (addr string, closeProxy func(), err error) {
	l, err := newProxies().link(server, "")
	if err != nil {
		return "", nil, err
	}
	if err := l.delay(by, 0); err != nil {
		l.cut()
		return "", nil, err
	}
	return l.addr, l.cut, nil
}
