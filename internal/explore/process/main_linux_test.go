package process

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

func TestMain(m *testing.M) {
	Keep()
	if how := os.Getenv("EXPLORER"); how != "" {
		explorer(how)
	}
	os.Exit(m.Run())
}

// TestNotRoot repeats tests without root's rights: as another user, in user namespaces.
func TestNotRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("is not root already")
	}
	tier.Test(t, "runs other tests again, as nobody")
	t.Parallel()
	const nobody = 65534
	credential := &syscall.Credential{Uid: nobody, Gid: nobody}
	if err := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "-Un", "true").Run(); err != nil {
		t.Skipf("user namespaces are not allowed here, or unshare(1) is not there: %v: %s", err, remedy())
	}
	tmp := t.TempDir()
	for dir := tmp; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o777))
	}
	tests := []string{"TestSpaces", "TestBacklog", "TestKilled", "TestStop", "TestCommand", "TestPID", "TestAttach", "TestAsleep", "TestRests", "TestSleeps"}
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^("+strings.Join(tests, "|")+")$", "-test.v", "-test.timeout=10m")
	again.Dir = tmp
	again.Env = append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp, "GOCOVERDIR="+tmp)
	again.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	b, err := again.CombinedOutput()
	if err != nil {
		t.Errorf("as nobody: %v\n%s", err, b)
	}
	for _, name := range tests {
		if !bytes.Contains(b, []byte("--- PASS: "+name+" ")) {
			t.Errorf("%s did not run:\n%s", name, b)
		}
	}
}

func newTestNetwork(t *testing.T) *Network {
	t.Helper()
	s, err := NewNetwork()
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// begin starts a program, whose log becomes part of the test's log.
func begin(t *testing.T, s *Network, line string) (*Program, *buffer) {
	t.Helper()
	log := &buffer{}
	p, err := Start(s, Command{Line: line, Log: log})
	require.NoError(t, err)
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("log of %s:\n%s", line, log)
		}
	})
	return p, log
}

// python returns a command line that runs a Python program from a file.
func python(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	file := filepath.Join(t.TempDir(), "program.py")
	require.NoError(t, os.WriteFile(file, []byte(program), 0o644))
	return path + " -u " + file
}

// dial connects to a server, and waits until it listens.
func dial(t *testing.T, s *Network, address string) *net.TCPConn {
	t.Helper()
	var c *net.TCPConn
	require.Eventually(t, "connect to "+address, func() bool {
		var err error
		c, err = s.Dial(t.Context(), address)
		return err == nil
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// running returns the processes whose command line contains the mark, except zombies.
func running(mark string) (pids []int) {
	all, _ := os.ReadDir("/proc")
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && bytes.Contains(b, []byte(mark)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func keepers(pid int) (found []int) {
	below, _ := descendants(pid)
	for _, pid := range below.pids {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(string(b), keeperName) {
			found = append(found, pid)
		}
	}
	return found
}

// A buffer allows reads during writes.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *buffer) has(s string) func() bool {
	return func() bool { return strings.Contains(b.String(), s) }
}
