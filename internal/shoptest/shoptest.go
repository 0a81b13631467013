// Package shoptest runs the built shop as a user does, for tests of any package.
//
//	Run(t, "rush", "--strategy", "none") -> code, stdout, stderr
//	Serve(t, Command(t, "serve"))        -> URL
package shoptest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/tier"
)

// Exit codes of the shop.
const (
	Broken       = 1
	Harness      = 2
	Inconclusive = 3
	Interrupted  = 130
)

// Variable is the environment variable with the path of the built program. Without it, the tests of
// a package build one.
const Variable = "OVERSELL_SHOP_BIN"

// plain and raced return the path of the program without and with the race detector. Only `make soak` builds
// the one with it.
var (
	plain = sync.OnceValues(func() (string, error) { return built(Variable, "shop-plain") })
	raced = sync.OnceValues(func() (string, error) {
		if !tier.Soaking() {
			return plain()
		}
		return built("OVERSELL_SHOP_RACE_BIN", "shop-raced", raceFlags...)
	})
)

// raceFlags exclude SQLite and its C library, since neither the race detector nor checkptr observes their
// memory. tools/test.sh has the same flags, so that a package is compiled once.
var raceFlags = []string{
	"-race",
	"-gcflags=modernc.org/sqlite/lib=-race=false -d=checkptr=0",
	"-gcflags=modernc.org/libc=-race=false -d=checkptr=0",
}

// built returns the program that the environment variable names, or else builds it into bin/. It replaces an
// older program in one step, since another test may be running the older one. Under `make quick`, which has
// no time for the build, it returns an error instead.
func built(variable, name string, flags ...string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return filepath.Abs(path)
	}
	if tier.Quick() {
		return "", errors.New("make quick builds no shop: the test needs a line tier.Test")
	}
	folder, err := root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "bin", name)
	fresh := fmt.Sprint(path, "-", os.Getpid())
	build := exec.Command("go", append(append([]string{"build", "-o", fresh}, flags...), "github.com/oversell/oversell/cmd/shop")...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the shop: %w: %s", err, out)
	}
	return path, os.Rename(fresh, path)
}

// Path returns the path of the program.
func Path(t testing.TB) string { return pathOf(t, plain) }

func pathOf(t testing.TB, binary func() (string, error)) string {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	return path
}

// Command returns a command of the shop, which ends with the test.
func Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return command(t, plain, args...)
}

// Raced returns a command like Command. Under `make soak`, its program has the race detector.
func Raced(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return command(t, raced, args...)
}

func command(t testing.TB, binary func() (string, error), args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), pathOf(t, binary), args...)
	if slices.Contains(args, "--app") { // only Debian's python3 is sure to have Debian's modules
		c.Env = append(os.Environ(), "PATH=/usr/bin:"+os.Getenv("PATH"))
	}
	return c
}

// Run runs a command of the shop to its end.
func Run(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return Exit(t, Command(t, args...))
}

// RunRaced does the same as Run. Under `make soak`, its program has the race detector.
func RunRaced(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return Exit(t, Raced(t, args...))
}

// Exit runs the command c to its end and returns its exit code and output.
func Exit(t testing.TB, c *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// Serve starts a command that serves, and returns its URL.
func Serve(t testing.TB, c *exec.Cmd) (url string) {
	t.Helper()
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	require.NoError(t, err)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimPrefix(strings.TrimSpace(line), localserver.Listening)
}

// With lists the command lines of the processes that have a variable, such as "TMPDIR=/tmp/x", in their
// environment. These are the program under test and the children that inherit the variable. A process that
// has just ended is not in the list.
func With(t testing.TB, variable string) (lines []string) {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, path := range environments {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(variable+"\x00")) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			lines = append(lines, string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return lines
}

// Buffer is a buffer that a command writes while a test reads it.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
