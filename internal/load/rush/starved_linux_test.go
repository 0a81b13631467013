package rush

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// stopsEnv is the environment variable that makes this test binary a service. Its value is a process id. In
// each burst the service stops that process for a while.
const stopsEnv = "OVERSELL_TEST_STOPS"

// stops is the time for which the service stops that process. Even half of it is above the bound of 1.5 s, so
// the machine may be busy for the other half.
const stops = 3200 * time.Millisecond

// TestStopsService is the service of TestStarved.
func TestStopsService(t *testing.T) {
	pid := os.Getenv(stopsEnv)
	if pid == "" {
		t.Skip("only TestStarved runs the service")
	}
	if pid == "self" {
		pid = fmt.Sprint(os.Getpid())
	}
	shop := &market{}
	var buys atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut:
			buys.Store(0)
		case r.URL.Path == "/product/buy" && buys.Add(1) == 10:
			script := fmt.Sprintf("kill -STOP %s; sleep %.1f; kill -CONT %[1]s", pid, stops.Seconds())
			expect.NoError(t, exec.Command("sh", "-c", script).Start())
			time.Sleep(stops / 10) // the process is stopped now
		}
		shop.ServeHTTP(w, r)
	}))
	defer server.Close()
	fmt.Println("at " + server.URL)
	_, _ = os.Stdin.Read(make([]byte, 1)) // blocks until the test ends
}

// TestStarved stops the service, or the load generator, in the middle of each burst. A service that
// serves no buyer is stalled. A load generator that gets no processor proves nothing.
func TestStarved(t *testing.T) {
	tier.Test(t, "it stops the process for seconds")
	for _, c := range []struct {
		name, stops string
		want        verdict.Verdict
		says        string
	}{
		{"the service stops", "self", verdict.Stalled, "no buyer was served for "},
		{"the load generator stops", fmt.Sprint(os.Getpid()), verdict.Inconclusive, "this process got no processor for "},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := exec.Command(os.Args[0], "-test.run=^TestStopsService$", "-test.v")
			service.Env = append(os.Environ(), stopsEnv+"="+c.stops)
			in, err := service.StdinPipe()
			require.NoError(t, err)
			out, err := service.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, service.Start())
			t.Cleanup(func() {
				_ = service.Process.Signal(syscall.SIGCONT)
				_ = in.Close()
				_ = service.Wait()
			})
			url := ""
			for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
				_, url, _ = strings.Cut(lines.Text(), "at ")
			}
			config := rushAt(t, &market{})
			config.BaseURLs, config.Shelf = []string{url}, Target{BaseURL: url}
			config.Auditor, config.Stock, config.Buyers, config.Lease = config.Shelf, 20, 40, 2*time.Second
			r, err := Run(t.Context(), config)
			if err != nil || r.Verdict != c.want || !strings.Contains(r.Reason, c.says) {
				t.Errorf("%s (%s), %v; want %s (%s)", r.Verdict, r.Reason, err, c.want, c.says)
			}
		})
	}
}
