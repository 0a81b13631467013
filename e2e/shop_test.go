package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const patience = 2 * time.Minute

// built is the folder of the shop that these tests have built, or "".
var built string

// binary returns the path of the shop: the one in OVERSELL_SHOP_BIN, or one that is built once.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("OVERSELL_SHOP_BIN"); path != "" {
		return path, nil
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("oversell-e2e-%d", os.Getpid()), "shop")
	build := exec.Command("go", "build", "-o", path, "./cmd/shop")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the shop: %w: %s", err, out)
	}
	built = filepath.Dir(path)
	return path, nil
})

type shop struct {
	t    *testing.T
	args []string
	cmd  *exec.Cmd
	url  string
	log  bytes.Buffer
}

// startShop starts a shop on a free port. It ends with the test.
func startShop(t *testing.T, args ...string) *shop {
	t.Helper()
	s := &shop{t: t, args: args}
	s.start("127.0.0.1:0")
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *shop) start(addr string) {
	s.t.Helper()
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(path, append([]string{"serve", "--addr", addr}, s.args...)...)
	s.cmd.Stderr = &s.log
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	at := strings.Index(line, "http://")
	if err != nil || at < 0 {
		_ = s.cmd.Wait()
		s.t.Fatalf("shop serve says %q, %v; %s", line, err, s.log.String())
	}
	s.url = strings.TrimSpace(line[at:])
}

// stop ends the shop as Ctrl-C does, and waits.
func (s *shop) stop() {
	s.t.Helper()
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Error(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("shop serve: %v: %s", err, s.log.String())
	}
	s.cmd = nil
}

// restart starts a new shop at the same address, without the data of the old one.
func (s *shop) restart() {
	s.t.Helper()
	s.stop()
	s.start(strings.TrimPrefix(s.url, "http://"))
}

// call sends a request with a JSON body ("" for none) and decodes the answer into v.
func (s *shop) call(method, path, body string, header http.Header, v any) (status int) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if header != nil {
		request.Header = header
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Error(err)
		return 0
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && v != nil {
		err = json.Unmarshal(answer, v)
	}
	if err != nil {
		s.t.Errorf("%s %s: %v in %.200s", method, path, err, answer)
	}
	return response.StatusCode
}

// promising returns the first strategy of the catalogue that can run here and promises the given
// verdict in a rush.
func (s *shop) promising(verdict string) string {
	s.t.Helper()
	var list []struct {
		Name      string
		Available bool
		Promise   map[string]string
	}
	s.call(http.MethodGet, "/strategies", "", nil, &list)
	for _, e := range list {
		if e.Available && e.Promise["rush"] == verdict {
			return e.Name
		}
	}
	s.t.Fatalf("no strategy promises %q in a rush", verdict)
	return ""
}
