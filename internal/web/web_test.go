package web

import (
	"bufio"
	"context"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9/logging"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/web/webtest"
)

type response = webtest.Response

var asJSON = http.Header{"Content-Type": {"application/json"}}

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	logging.Disable() // go-redis returns the errors that it would log
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // these tests wait for time-outs and use little processor time
	os.Exit(m.Run())
}

// A setup is a shop with the defaults of shop serve.
type setup struct {
	Config
	on          engine.Config
	addr, token string
}

// startServe serves a shop until the test ends and checks its exit. The zero engine.Config is the
// embedded engine.
func startServe(t *testing.T, on engine.Config, change ...func(*setup)) (url string) {
	t.Helper()
	s := setup{on: on, addr: "127.0.0.1:0", Config: Config{
		Settings: lockstrategy.DefaultSettings(), MaxInflight: 2_000, SoldOutCheck: true, Admission: true, MaxConnections: 10_000,
	}}
	for _, c := range change {
		c(&s)
	}
	if s.on.DB == "" {
		s.on.Name = engine.Embedded
	}
	s.on.Wait, s.on.Lease, s.on.Conns = s.Settings.Wait, s.Settings.LeaseTTL, 64
	ctx, stop := context.WithCancel(context.Background())
	e, err := engine.Open(ctx, s.on)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		expect.NoError(t, e.Close())
	})
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- New(e, s.Config, slog.New(slog.DiscardHandler)).Serve(ctx, s.addr, s.token, in)
		_ = in.Close()
	}()
	t.Cleanup(func() {
		stop()
		expect.NoError(t, <-ended, "the end of the shop")
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "the shop said nothing")
	go io.Copy(io.Discard, out)
	return strings.TrimPrefix(strings.TrimSpace(line), localserver.Listening)
}

func waitFor(d time.Duration) func(*setup) { return func(s *setup) { s.Settings.Wait = d } }

// named adds names that the Host of a request may have.
func named(hosts ...string) func(*setup) { return func(s *setup) { s.Hosts = hosts } }

// elsewhere listens on all addresses, where admin routes require the token.
func elsewhere(token string) func(*setup) {
	return func(s *setup) { s.addr, s.token = "0.0.0.0:0", token }
}
