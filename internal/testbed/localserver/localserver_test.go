package localserver

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// TestMissingProgram: the error says how to install the program.
func TestMissingProgram(t *testing.T) {
	_, err := findProgram("apt-get install nonesuch", "nonesuch-server", "nonesuchd")
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "apt-get install nonesuch") {
		t.Errorf("%v, want ErrMissing with the line that installs it", err)
	}
}

func newGroup(t testing.TB) *Group {
	t.Helper()
	tier.Test(t, "needs servers")
	g, err := NewGroup()
	require.NoError(t, err)
	t.Cleanup(func() {
		expect.NoError(t, g.Close())
		if _, err := os.Stat(g.dir); !os.IsNotExist(err) {
			t.Errorf("the group's folder is still there: %v", err)
		}
	})
	return g
}

// TestStop: Stop distinguishes a child that ends on SIGTERM from a child that must be killed.
func TestStop(t *testing.T) {
	g := newGroup(t)
	willing, err := g.Start(exec.Command("sh", "-c", "trap 'exit 0' TERM; echo ready >&2; while :; do sleep 0.01; done"))
	require.NoError(t, err)
	_ = willing.Stop(10 * time.Second) // if it has not set its trap yet, the signal ends it, too
	deaf, err := g.Start(exec.Command("sh", "-c", "trap '' TERM; kill -STOP $$"))
	require.NoError(t, err)
	if err := deaf.Stop(50 * time.Millisecond); err == nil {
		t.Error("a child that had to be killed was reported as ended by itself")
	}
	for _, p := range []*Process{willing, deaf} {
		select {
		case <-p.Done():
		default:
			t.Error("Stop returned before the child had ended")
		}
	}
}

// TestFailedStart: a server that ends at once is an error with its last words.
func TestFailedStart(t *testing.T) {
	g := newGroup(t)
	s := newServer(g, "thing", folder{path: t.TempDir()}, 0)
	s.command = []string{"sh", "-c", "echo no more room; exit 3"}
	s.probe = func() error { return errors.New("not yet") }
	if err := s.Start(); err == nil || !strings.Contains(err.Error(), "thing ended while starting") || !strings.Contains(err.Error(), "no more room") {
		t.Errorf("%v, want that it ended, and its words", err)
	}
}

// TestPortTaken: a server whose port is taken starts on another port, and is not confused with the first
// server.
func TestPortTaken(t *testing.T) {
	g := newGroup(t)
	first, err := StartRedis(g)
	require.NoError(t, err)
	_, taken, err := net.SplitHostPort(first.Addr)
	require.NoError(t, err)
	var ports []int
	second, err := onFreePort(g, func(port int) (*Redis, error) {
		if ports = append(ports, port); len(ports) == 1 {
			port, _ = strconv.Atoi(taken)
		}
		r := &Redis{newServer(g, "redis-server", folder{path: t.TempDir()}, port)}
		r.probe = r.ping
		r.command = []string{first.command[0], "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", ""}
		return r, r.Start()
	})
	if err != nil || len(ports) != 2 || second.Addr == first.Addr {
		t.Errorf("%v after %d tries, want the second on a port of its own", err, len(ports))
	}
}

// TestPortKept: no other server gets the port of a server that is down. After its group has ended, the
// port is free.
func TestPortKept(t *testing.T) {
	reserved := func(address string) bool {
		l, err := net.ListenPacket("udp", address)
		return err != nil || l.Close() != nil
	}
	var address string
	t.Run("group", func(t *testing.T) { // the servers of the group end with this subtest
		r, err := StartRedis(newGroup(t))
		require.NoError(t, err)
		require.NoError(t, r.Kill())
		if address = r.Addr; !reserved(address) {
			t.Errorf("%s is anybody's while its server is down", address)
		}
		expect.NoError(t, r.Start())
	})
	if reserved(address) {
		t.Errorf("%s is still reserved", address)
	}
}

// TestOwnTmpdir: neither the installer nor the server deletes the temporary tables of another server in
// the machine's temporary folder.
func TestOwnTmpdir(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	others := filepath.Join(os.TempDir(), "#sql-temptable-1-2-3.MAI")
	require.NoError(t, os.WriteFile(others, nil, 0o600))
	require.NoError(t, expect.ErrorOf(StartMySQL(newGroup(t))))
	expect.NoError(t, expect.ErrorOf(os.Stat(others)), "the other server's table")
}

// TestFailedInstall: the error contains the reason in one line, without the installer's advice to read a log
// that no longer exists.
func TestFailedInstall(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", t.TempDir()) // has no template
	path, err := findProgram("", "mariadbd", "mysqld")
	require.NoError(t, err)
	g := newGroup(t)
	in, err := g.newFolder("mysql", nil)
	require.NoError(t, err)
	if err := os.MkdirAll(in.data("ibdata1"), 0o700); err != nil { // a folder in the place of a file
		t.Fatal(err)
	}
	err = initialize(g, path, in)
	if err == nil || !strings.Contains(err.Error(), "ERROR") || strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 ||
		strings.Contains(err.Error(), "logs") {
		t.Errorf("%v, want one line with the reason", err)
	}
	t.Log(err)
}

// TestLastWords: lastWords returns the last errors, or the last lines of a log without errors.
func TestLastWords(t *testing.T) {
	for _, c := range []struct{ log, want string }{
		{"", ""},
		{"1\n2\n\n3\n4", "2; 3; 4"},
		{"1 [ERROR] a\n2 [ERROR] b\n3  [ERROR]\tc\n4 [ERROR] d\n5 [ERROR] Aborting\n6 [Note] bye\n", "2 [ERROR] b; 3 [ERROR] c; 4 [ERROR] d"},
		{
			"ERROR main - Unexpected\njava.net.BindException: Address already in use\n\tat sun.nio.ch.Net.bind0\n",
			"ERROR main - Unexpected; java.net.BindException: Address already in use",
		},
		{"Killed\nInstallation of system tables failed! Examine the logs in\n/tmp/x for more", "Killed; Installation of system tables failed!"},
	} {
		file := filepath.Join(t.TempDir(), "log")
		require.NoError(t, os.WriteFile(file, []byte(c.log), 0o600))
		expect.Equal(t, lastWords(file), c.want)
	}
}

// TestClientMissing: a machine without a server's client gets one line that names the package.
func TestClientMissing(t *testing.T) {
	t.Setenv("PATH", "")
	none := filepath.Join(t.TempDir(), "none")
	server := Server{Addr: "127.0.0.1:1", command: []string{none}}
	_, my := (&MySQL{Server: server}).Client(t.Context(), "shop")
	_, pg := (&Postgres{Server: server, bin: none}).Client(t.Context(), "shop")
	for says, err := range map[string]error{"apt-get install mariadb-client": my, "apt-get install postgresql-client": pg} {
		if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; want one line with %q", err, says)
		}
	}
}

// TestClientPassword: no command line contains the password, which every user could read there.
func TestClientPassword(t *testing.T) {
	server := Server{Addr: "127.0.0.1:1", command: []string{"mariadbd"}}
	my, err := (&MySQL{server, "secret"}).Client(t.Context(), "shop")
	if err != nil {
		t.Skip(err)
	}
	pg, err := (&Postgres{Server: server, password: "secret"}).Client(t.Context(), "shop")
	if err != nil {
		t.Skip(err)
	}
	if all := append(my.Args, pg.Args...); slices.ContainsFunc(all, func(arg string) bool { return strings.Contains(arg, "secret") }) {
		t.Errorf("%q", all)
	}
}

// TestNotZookeeper: the error contains the whole answer of another program on the port, and nothing else.
func TestNotZookeeper(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = io.ReadFull(conn, make([]byte, len("srvr"))) // a close with unread bytes would be a reset
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad "))
			_ = conn.Close()
		}
	}()
	z := &Zookeeper{Server{Addr: l.Addr().String()}}
	if err := z.ping(); err == nil || err.Error() != `srvr was answered with "HTTP/1.1 400 Bad "` {
		t.Error(err)
	}
}
