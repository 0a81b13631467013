package program_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// An attached is a program that already runs, with its server. It will connect to the gate, which does
// not exist yet.
type attached struct {
	program *exec.Cmd
	url     string // URL of the server
	gate    string
	port    string // port of the program
}

// startAttached starts testdata/shared/shop.py before there is a gate.
func startAttached(t *testing.T, mode string, pool int) *attached {
	t.Helper()
	shoptest.Needs(t, "python3")
	server := localservertest.MySQL(t)
	u, err := url.Parse(server.URL())
	require.NoError(t, err)
	password, _ := u.User.Password()
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User, config.Passwd, config.DBName = "tcp", u.Host, u.User.Username(), password, "shop"
	config.MultiStatements = true
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	schema, err := os.ReadFile("testdata/shared/schema.sql")
	require.NoError(t, err)
	if _, err := db.ExecContext(t.Context(), string(schema)); err != nil {
		t.Fatal(err)
	}
	a := &attached{url: server.URL(), gate: unused(t)}
	_, port, _ := strings.Cut(a.gate, ":")
	a.program = exec.Command("/usr/bin/python3", "testdata/shared/shop.py", mode, strconv.Itoa(pool), "0", port)
	a.program.Env = append(os.Environ(), "MYSQL_USER="+config.User, "MYSQL_PASSWORD="+password)
	out, err := a.program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, a.program.Start())
	t.Cleanup(func() {
		_ = a.program.Process.Kill()
		_ = a.program.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the program ends: %v", lines.Err())
	}
	a.port = lines.Text()
	return a
}

func unused(t *testing.T) string {
	t.Helper()
	var plain net.ListenConfig
	l, err := plain.Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func (a *attached) file(t *testing.T, pid int) string {
	t.Helper()
	head := fmt.Sprintf("name: attached\nattach: { pid: %d, gates: { mysql: %q } }\nmysql: %s\n", pid, a.gate, a.url)
	return writeApp(t, head, "buyer: POST http://127.0.0.1:"+a.port+"/buy")
}

func (a *attached) serves(t *testing.T) {
	t.Helper()
	resp, err := http.Get("http://127.0.0.1:" + a.port + "/")
	if err != nil {
		t.Fatalf("the program does not answer any more: %v", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the program answers %s", resp.Status)
	}
	if err := a.program.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the program has gone: %v", err)
	}
}

// TestAttach: the tool checks a running program, searches it and sends bursts, and the program keeps
// running. Its pool contains broken connections from an earlier time.
func TestAttach(t *testing.T) {
	tier.Soak(t, "no other test has it: it searches a running program")
	t.Parallel()
	for _, c := range []sharedCase{
		{mode: "naive", pool: 2, orders: 96, violating: 60},
		{mode: "guarded", pool: 2, orders: 18, quick: true},
	} {
		t.Run(c.name(), func(t *testing.T) {
			if !c.quick {
				tier.Soak(t, "a long search of a program")
			}
			a := startAttached(t, c.mode, c.pool)
			file := a.file(t, a.program.Process.Pid)
			code, stdout, stderr := exploreApp(t, file, "--app-check")
			if code != 0 || !strings.Contains(stdout, "INSERT INTO orders") {
				t.Fatalf("--app-check: exit %d: %s%s", code, stdout, stderr)
			}
			a.serves(t)
			code, r, stderr := search(t, file)
			if want := min(c.violating, shoptest.Broken); code != want {
				t.Fatalf("exit %d, want %d: %s", code, want, stderr)
			}
			appCase{orders: c.orders, violating: c.violating}.found(t, r)
			a.serves(t)
			if c.violating > 0 {
				return
			}
			code, stdout, stderr = verifyApp(t, file, "--repeat", "1")
			if code != 0 || stderr != "" || !strings.Contains(stdout, "rush: attached, 1 burst of 50 buyers at once") || strings.Count(stdout, "  holds\n") != 1 {
				t.Errorf("verify: exit %d: %s%s", code, stdout, stderr)
			}
			a.serves(t)
		})
	}
}

// TestAttachRefused: one line says why the tool cannot attach to a running program.
func TestAttachRefused(t *testing.T) {
	tier.Soak(t, "no other test has it: it checks which processes can be attached to")
	t.Parallel()
	a := startAttached(t, "naive", 2)
	other := exec.CommandContext(t.Context(), "sleep", "600")
	require.NoError(t, other.Start())
	for _, c := range []struct {
		pid  int
		args []string
		want string
	}{
		{other.Process.Pid, nil, "it does not listen at"},
		{os.Getpid(), nil, "has started this command itself"},
		{a.program.Process.Pid, []string{"--events", "crash"}, "cannot crash alone"},
	} {
		code, stdout, stderr := exploreApp(t, a.file(t, c.pid), append(c.args, "--app-check")...)
		if code != shoptest.Harness || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("exit %d: %s%s; want %d, and one line with %q", code, stdout, stderr, shoptest.Harness, c.want)
		}
	}
	a.serves(t)
}
