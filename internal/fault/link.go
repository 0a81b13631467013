package fault

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

// proxies makes links. It is Toxiproxy's server, whose API nobody uses here.
type proxies struct{ server *toxiproxy.ApiServer }

func newProxies() *proxies {
	return &proxies{toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())}
}

// A link is one shop's connection to one server: a proxy on a port of its own.
type link struct {
	addr  string // where the shop connects
	proxy *toxiproxy.Proxy
	probe string // a question that the server answers at once
}

// Probes, by the server's protocol. The Redis of the embedded engine takes no inline PING.
const (
	probeRedis     = "*1\r\n$4\r\nPING\r\n"
	probeZookeeper = "ruok"
	probeEtcd      = "GET /health HTTP/1.0\r\n\r\n"
)

func (t *proxies) link(server, probe string) (*link, error) {
	for tries := 1; ; tries++ {
		port, err := localserver.FreePort()
		if err != nil {
			return nil, err
		}
		p := toxiproxy.NewProxy(t.server, "link", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), server)
		if err := p.Start(); err == nil {
			return &link{p.Listen, p, probe}, nil
		} else if tries == 3 || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("a proxy before %s: %w", server, err)
		}
	}
}

// cut closes the connections and refuses new ones.
func (l *link) cut() { l.proxy.Stop() }

// mend undoes cut.
func (l *link) mend() error {
	err := l.proxy.Start()
	// Another process that looks for a free port may have it for a moment.
	for tries := 0; errors.Is(err, syscall.EADDRINUSE) && tries < 100; tries++ {
		time.Sleep(50 * time.Millisecond)
		err = l.proxy.Start()
	}
	if errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
		return nil
	}
	return err
}

// redirect leads the link to another server.
func (l *link) redirect(server string) error {
	l.proxy.Stop()
	l.proxy.Upstream = server
	return l.mend()
}

// silence lets nothing through in either direction, like a network partition:
// connections stay open.
func (l *link) silence() error {
	return errors.Join(l.addToxic("silent-up", "timeout", "upstream", nil), l.addToxic("silent-down", "timeout", "downstream", nil))
}

// delay holds back each answer.
func (l *link) delay(by, jitter time.Duration) error {
	return l.addToxic("late", "latency", "downstream", map[string]int64{"latency": by.Milliseconds(), "jitter": jitter.Milliseconds()})
}

// heal undoes silence and delay.
func (l *link) heal(ctx context.Context) { l.proxy.Toxics.ResetToxics(ctx) }

func (l *link) addToxic(name, kind, stream string, attributes map[string]int64) error {
	if attributes == nil {
		attributes = map[string]int64{"timeout": 0}
	}
	text, err := json.Marshal(map[string]any{"name": name, "type": kind, "stream": stream, "attributes": attributes})
	if err != nil {
		return err
	}
	_, err = l.proxy.Toxics.AddToxicJson(bytes.NewReader(text))
	return err
}

// roundTrip asks the server through the link and returns how long the answer took.
// It fails when there is none within the timeout.
func (l *link) roundTrip(timeout time.Duration) (time.Duration, error) {
	start := time.Now()
	conn, err := net.DialTimeout("tcp", l.addr, timeout)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(start.Add(timeout)); err != nil {
		return 0, err
	}
	if _, err := conn.Write([]byte(l.probe)); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}
