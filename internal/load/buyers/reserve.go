package buyers

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"sync"
)

// A reserve opens connections before requests need them. It is safe for concurrent use.
type reserve struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	live map[string]int            // connections that are open, by address
	idle map[string][]*reserveConn // open connections that no request has used
}

// A reserveConn tells its reserve when the connection is closed.
type reserveConn struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *reserveConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

func newReserve(dial func(ctx context.Context, network, address string) (net.Conn, error)) *reserve {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return &reserve{dial: dial, live: map[string]int{}, idle: map[string][]*reserveConn{}}
}

// fill opens connections to the service at the URL `base`, in parallel, until n are open. It ignores errors,
// since the request that needs the connection will report them.
func (r *reserve) fill(ctx context.Context, base string, n int) {
	u, err := url.Parse(base)
	if err != nil {
		return
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
	r.mu.Lock()
	n -= r.live[address]
	r.mu.Unlock()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			conn, err := r.open(ctx, "tcp", address)
			if err != nil {
				return
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.idle[address] = append(r.idle[address], conn)
		})
	}
	all.Wait()
}

func (r *reserve) open(ctx context.Context, network, address string) (*reserveConn, error) {
	conn, err := r.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	r.count(address, 1)
	return &reserveConn{conn, sync.OnceFunc(func() { r.count(address, -1) })}, nil
}

func (r *reserve) count(address string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[address] += n
}

// take returns a connection that fill has opened. If there is none left, it opens one.
func (r *reserve) take(ctx context.Context, network, address string) (net.Conn, error) {
	r.mu.Lock()
	if all := r.idle[address]; len(all) > 0 {
		r.idle[address] = all[1:]
		r.mu.Unlock()
		return all[0], nil
	}
	r.mu.Unlock()
	return r.open(ctx, network, address)
}

// close closes the connections that no request has used. net/http does not notice if the service has closed one.
func (r *reserve) close() {
	r.mu.Lock()
	var all []*reserveConn
	for address, idle := range r.idle {
		all = slices.Concat(all, idle)
		delete(r.idle, address)
	}
	r.mu.Unlock()
	for _, conn := range all {
		_ = conn.Close()
	}
}
