package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/oversell/oversell/internal/testbed/localserver"
)

// A Link is a TCP proxy in front of one server. It can cut, silence and delay connections, and redirect
// them to another server. It uses Toxiproxy as a library.
type Link struct {
	Addr   string // address for clients, host:port
	Need   string // the kind of lock server, such as "redis"; "" for other servers
	Server string // address of the server, host:port
	proxy  *toxiproxy.Proxy
}

// probes contains a request that a lock server answers at once, by the kind of server. Kinds that are not
// listed are Redis, and get a PING in RESP: the Redis of the embedded engine accepts no inline PING.
var probes = map[string]string{
	"zookeeper": "ruok",
	"etcd":      "GET /health HTTP/1.0\r\n\r\n",
}

// NewLink puts a link in front of a server, host:port.
func NewLink(server string) (*Link, error) {
	for tries := 1; ; tries++ {
		port, err := localserver.FreePort()
		if err != nil {
			return nil, err
		}
		proxies := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
		p := toxiproxy.NewProxy(proxies, "link", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), server)
		if err := p.Start(); err == nil {
			return &Link{Addr: p.Listen, Server: server, proxy: p}, nil
		} else if tries == 3 || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("a proxy before %s: %w", server, err)
		}
	}
}

// Cut closes the connections and refuses new ones.
func (l *Link) Cut() { l.proxy.Stop() }

// Mend undoes Cut: the link accepts connections again.
func (l *Link) Mend() error {
	err := l.proxy.Start()
	// Another process that looks for a free port may use the link's port for a moment.
	for tries := 0; errors.Is(err, syscall.EADDRINUSE) && tries < 100; tries++ {
		time.Sleep(50 * time.Millisecond)
		err = l.proxy.Start()
	}
	if errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
		return nil
	}
	return err
}

// Redirect closes the connections. New connections go to another server.
func (l *Link) Redirect(server string) error {
	l.proxy.Stop()
	l.proxy.Upstream = server
	return l.Mend()
}

// Silence drops all traffic in both directions, like a network partition. Connections stay open.
func (l *Link) Silence() error {
	return errors.Join(l.addToxic("timeout", "upstream", 0, 0), l.Mute())
}

// Mute drops all answers. Requests still reach the server. Connections stay open.
func (l *Link) Mute() error { return l.addToxic("timeout", "downstream", 0, 0) }

// Delay delays each answer.
func (l *Link) Delay(by, jitter time.Duration) error {
	return l.addToxic("latency", "downstream", by, jitter)
}

// DelayBothWays delays each request and each answer.
func (l *Link) DelayBothWays(by, jitter time.Duration) error {
	return errors.Join(l.addToxic("latency", "upstream", by, jitter), l.Delay(by, jitter))
}

// Heal undoes Silence, Mute and Delay.
func (l *Link) Heal(ctx context.Context) { l.proxy.Toxics.ResetToxics(ctx) }

func (l *Link) addToxic(kind, stream string, by, jitter time.Duration) error {
	text, err := json.Marshal(map[string]any{
		"name": kind + "-" + stream, "type": kind, "stream": stream,
		"attributes": map[string]int64{"timeout": 0, "latency": by.Milliseconds(), "jitter": jitter.Milliseconds()},
	})
	if err != nil {
		return err
	}
	_, err = l.proxy.Toxics.AddToxicJson(bytes.NewReader(text))
	return err
}

// RoundTrip sends a request to the lock server through the link and returns the time until the answer.
// It returns an error if there is no answer within the timeout.
func (l *Link) RoundTrip(timeout time.Duration) (time.Duration, error) {
	start := time.Now()
	conn, err := net.DialTimeout("tcp", l.Addr, timeout)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(start.Add(timeout)); err != nil {
		return 0, err
	}
	probe, ok := probes[l.Need]
	if !ok {
		probe = "*1\r\n$4\r\nPING\r\n"
	}
	if _, err := conn.Write([]byte(probe)); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}
