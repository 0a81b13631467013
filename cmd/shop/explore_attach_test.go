package main

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

	"github.com/oversell/oversell/internal/tier"

	"github.com/go-sql-driver/mysql"

	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// An attached is a program that already runs with its server and knows the gate's future address.
type attached struct {
	program *exec.Cmd
	url     string // of the server
	gate    string
	port    string // of the program
}

// startAttached starts testdata/shared/shop.py before there is a gate.
func startAttached(t *testing.T, mode string, pool int) *attached {
	t.Helper()
	appCase{needs: []string{"python3"}}.need(t)
	server := localservertest.MySQL(t)
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User, config.Passwd, config.DBName = "tcp", u.Host, u.User.Username(), password, "shop"
	config.MultiStatements = true
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	schema, err := os.ReadFile("testdata/shared/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), string(schema)); err != nil {
		t.Fatal(err)
	}
	a := &attached{url: server.URL(), gate: unused(t)}
	_, port, _ := strings.Cut(a.gate, ":")
	a.program = exec.Command("/usr/bin/python3", "testdata/shared/shop.py", mode, strconv.Itoa(pool), "0", port)
	a.program.Env = append(os.Environ(), "MYSQL_USER="+config.User, "MYSQL_PASSWORD="+password)
	out, err := a.program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.program.Start(); err != nil {
		t.Fatal(err)
	}
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

// unused returns an unused loopback address.
func unused(t *testing.T) string {
	t.Helper()
	var plain net.ListenConfig
	l, err := plain.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// file returns the file that describes it.
func (a *attached) file(t *testing.T, pid int, gates, more string) string {
	t.Helper()
	head := fmt.Sprintf("name: attached\nattach: { pid: %d, gates: { %s } }\nmysql: %s\n%s", pid, gates, a.url, more)
	return writeApp(t, head, "buyer: POST http://127.0.0.1:"+a.port+"/buy")
}

func (a *attached) mysql() string { return fmt.Sprintf("mysql: %q", a.gate) }

// serves fails the test unless the program runs and answers.
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

// TestAttach: a running program is checked and searched several times and keeps running. Its pool
// contains broken connections from before.
func TestAttach(t *testing.T) {
	tier.Soak(t, "starts programs and servers; TestShared has the gates of one program")
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
			file := a.file(t, a.program.Process.Pid, a.mysql(), "")
			code, stdout, stderr := exploreApp(t, file, "--app-check")
			if code != 0 || !strings.Contains(stdout, "INSERT INTO orders") {
				t.Fatalf("--app-check: exit %d: %s%s", code, stdout, stderr)
			}
			a.serves(t)
			code, r, stderr := searchFile(t, file)
			if want := min(c.violating, exitBroken); code != want {
				t.Fatalf("exit %d, want %d: %s", code, want, stderr)
			}
			appCase{orders: c.orders, violating: c.violating}.found(t, r)
			a.serves(t)
		})
	}
}

// TestAttachRefused: an impossible request is refused in one line.
func TestAttachRefused(t *testing.T) {
	tier.Soak(t, "starts programs and servers; internal/explore/app reads attach:")
	t.Parallel()
	a := startAttached(t, "naive", 2)
	pid := a.program.Process.Pid
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	u, err := url.Parse(a.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, file, want string
		args             []string
	}{
		{"ended", a.file(t, ended.Process.Pid, a.mysql(), ""), "cannot be attached to: no such process", nil},
		{"another program", a.file(t, other.Process.Pid, a.mysql(), ""), "it does not listen at", nil},
		{"this command's parent", a.file(t, os.Getpid(), a.mysql(), ""), "has started this command itself", nil},
		{"taken", a.file(t, pid, fmt.Sprintf("mysql: %q", taken.Addr()), ""), "address already in use", nil},
		{"no gate", a.file(t, pid, "", ""), "gates needs mysql", nil},
		{"no server", a.file(t, pid, a.mysql()+`, redis: "127.0.0.1:16379"`, ""), "gates: redis: also set redis", nil},
		{"at the server", a.file(t, pid, fmt.Sprintf("mysql: %q", u.Host), ""), "is the server's own address; choose another port", nil},
		{"local", a.file(t, pid, a.mysql(), "local: true\n"), "local and attach", nil},
		{"crash", a.file(t, pid, a.mysql(), ""), "cannot crash alone", []string{"--events", "crash"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := exploreApp(t, c.file, append(c.args, "--app-check")...)
			if code != exitHarness || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
				t.Errorf("exit %d: %s%s; want %d, and one line with %q", code, stdout, stderr, exitHarness, c.want)
			}
		})
	}
	a.serves(t)
}

// TestAttachForeignUser: only root may inspect another user's program.
func TestAttachForeignUser(t *testing.T) {
	tier.Soak(t, "starts programs and servers; internal/explore/app reads attach:")
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may look at every process")
	}
	a := startAttached(t, "naive", 2)
	code, _, stderr := exploreApp(t, a.file(t, 1, a.mysql(), ""), "--app-check")
	if code != exitHarness || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "run this as root") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
