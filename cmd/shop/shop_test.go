package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore/process"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// response is shared with the tests of internal/web.
type response = webtest.Response

const patience = webtest.Patience

// serveArgs returns the flags of a shop on the engine's servers.
func serveArgs(e *engine.Engine) []string {
	return []string{
		"--db", e.URLs.DB, "--redis", e.URLs.Redis, "--redlock", strings.Join(e.URLs.Redlock, ","),
		"--zookeeper", strings.Join(e.URLs.Zookeeper, ","), "--etcd", strings.Join(e.URLs.Etcd, ","),
	}
}

// startServe runs `shop serve` in this process on a free port until the test ends, and checks that
// it exits with 0.
func startServe(t *testing.T, args ...string) (url string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var log syncBuffer
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), in, &log)
		_ = in.Close()
	}()
	t.Cleanup(func() {
		stop()
		if code := <-exit; code != 0 {
			t.Errorf("shop serve exited with %d: %s", code, log.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("shop serve said nothing: %s", log.String())
	}
	go io.Copy(io.Discard, out)
	return strings.TrimPrefix(strings.TrimSpace(line), localserver.Listening)
}

// unhurried is a flag of a shop whose buyers do not give up on a slow machine, where a burst would then
// prove nothing.
const unhurried = "--wait=1m"

// syncBuffer is a buffer that a server writes and a test reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// binaryDir is TestMain's folder for the program.
var binaryDir string

// asShop makes this test program act as the shop. Under make quick it replaces a built program, since it
// has the same code.
const asShop = "SHOP_TEST_AS_SHOP"

// raced and plain are the user's program, with and without the race detector. Long searches and
// rushes that are raced elsewhere use the plain one. make test races the shop in the packages where its
// goroutines meet, and has only the plain program. Each is built once for a test binary, unless a
// variable names an existing one.
var (
	raced = sync.OnceValues(func() (string, error) {
		if !tier.Soaking() {
			return plain()
		}
		return build("OVERSELL_SHOP_RACE_BIN", "shop-raced", raceFlags...)
	})
	plain = sync.OnceValues(func() (string, error) { return build("OVERSELL_SHOP_BIN", "shop-plain") })
)

// raceFlags exclude SQLite and its C library, whose memory neither the race detector nor checkptr
// observes. tools/test.sh has the same flags, so that a package is compiled once.
var raceFlags = []string{
	"-race",
	"-gcflags=modernc.org/sqlite/lib=-race=false -d=checkptr=0",
	"-gcflags=modernc.org/libc=-race=false -d=checkptr=0",
}

func build(variable, name string, flags ...string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return filepath.Abs(path)
	}
	path := filepath.Join(binaryDir, name)
	args := append([]string{"build", "-o", path}, flags...)
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the shop: %w: %s", err, out)
	}
	return path, nil
}

func TestMain(m *testing.M) {
	process.Keep()
	if os.Getenv(plantedShop) == "" && os.Getenv(asShop) != "" {
		main()
	}
	silenceLibraries()
	if os.Getenv(plantedShop) != "" {
		os.Exit(servePlanted())
	}
	if err := os.Setenv(asShop, "1"); err != nil { // for child processes of shops in this process
		panic(err)
	}
	var err error
	if binaryDir, err = os.MkdirTemp("", "shop-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(binaryDir)
	os.Exit(code)
}

// shopCommand returns a command, under make soak with the race detector.
func shopCommand(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return commandOf(t, raced, args...)
}

func plainCommand(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return commandOf(t, plain, args...)
}

func commandOf(t testing.TB, binary func() (string, error), args ...string) *exec.Cmd {
	t.Helper()
	path := os.Args[0]
	if !tier.Quick() {
		var err error
		if path, err = binary(); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), path, args...)
	if slices.Contains(args, "--app") { // only Debian's python3 is sure to have Debian's modules
		c.Env = append(os.Environ(), "PATH=/usr/bin:"+os.Getenv("PATH"))
	}
	return c
}

// wantOneLine: with each of these flags the command prints one line with the mistake, and exits
// with 2.
func wantOneLine(t *testing.T, command string, wrong map[string]string) {
	t.Helper()
	for args, want := range wrong {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{command}, strings.Fields(args)...), &stdout, &stderr)
		if code != exitHarness || !strings.Contains(stderr.String(), want) || strings.Count(stderr.String(), "\n") != 1 || stdout.Len() > 0 {
			t.Errorf("%s %s: exit %d, %q, printed %q; want 2 and %q", command, args, code, stderr.String(), stdout.String(), want)
		}
	}
}

// served starts a built program that serves, and returns its address.
func served(t testing.TB, serve *exec.Cmd) (base string) {
	t.Helper()
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(strings.TrimSpace(line), localserver.Listening)
}
