package localserver

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// TestPostgres: Kill ends all processes of the server, which have their own sessions. After a restart the
// server has its data.
func TestPostgres(t *testing.T) {
	start := time.Now()
	p, err := StartPostgres(newGroup(t))
	require.NoError(t, err)
	t.Logf("ready after %s", time.Since(start))
	require.NoError(t, p.exec(t.Context(), "shop", "CREATE TABLE kept AS SELECT 1 AS n"))
	require.NoError(t, p.Kill())
	start = time.Now()
	require.NoError(t, p.Start())
	t.Logf("back after %s", time.Since(start))
	expect.NoError(t, p.exec(t.Context(), "shop", "DROP TABLE kept"))
}

// TestPostgresOrphan: a SIGKILL of the process that started the server leaves no server, no folder, and no
// shared memory.
func TestPostgresOrphan(t *testing.T) {
	if os.Getenv("STARTER") != "" {
		g, err := NewGroup()
		if err == nil {
			_, err = StartPostgres(g)
		}
		fmt.Println(g.dir, err)
		select {}
	}
	tier.Test(t, "needs servers")
	starter := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPostgresOrphan$")
	starter.Env = append(os.Environ(), "STARTER=1")
	out, err := starter.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, starter.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	dir, said, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || said != "<nil>" {
		t.Fatalf("%q, %v", line, err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "data", "postmaster.pid"))
	if len(files) != 1 {
		t.Fatalf("%d servers in %s", len(files), dir)
	}
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	words := strings.Fields(lines[6])
	segment := words[len(words)-1]
	if !hasSegment(t, segment) {
		t.Fatalf("no segment %s while the server runs: this test looks for nothing", segment)
	}
	require.NoError(t, starter.Process.Kill())
	_ = starter.Wait()
	pid, err := strconv.Atoi(lines[0])
	require.NoError(t, err)
	require.Eventually(t, "the folder is removed", func() bool { return errors.Is(expect.ErrorOf(os.Stat(dir)), os.ErrNotExist) })
	require.Eventually(t, "the segment is removed", func() bool { return !hasSegment(t, segment) })
	require.Eventually(t, "the server has ended", func() bool { return !runs(pid) })
}

func hasSegment(t *testing.T, id string) bool {
	t.Helper()
	list, err := exec.Command("ipcs", "-m").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(list)) {
		if words := strings.Fields(line); len(words) > 1 && words[1] == id {
			return true
		}
	}
	return false
}

// runs reports whether a process runs. A zombie, which ps still lists, does not.
func runs(pid int) bool {
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}

// TestPostgresBin: SHOP_POSTGRES_BIN selects the folder. A folder without a program is an error.
func TestPostgresBin(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SHOP_POSTGRES_BIN", dir)
	if _, err := postgresBin(); err == nil || !strings.Contains(err.Error(), "are not there") {
		t.Errorf("an empty folder: %v", err)
	}
	for _, name := range []string{"initdb", "postgres"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
	if got, err := postgresBin(); got != dir || err != nil {
		t.Errorf("%s, %v; want %s", got, err, dir)
	}
}

// TestReplica: a replica has the commits from before and after its start. It accepts writes once it is
// promoted, and Remove deletes its files.
func TestReplica(t *testing.T) {
	g := newGroup(t)
	p, err := StartPostgres(g)
	require.NoError(t, err)
	write := func(p *Postgres, statement string) {
		t.Helper()
		require.NoError(t, p.exec(t.Context(), "shop", statement))
	}
	write(p, "CREATE TABLE kept (n int)")
	write(p, "INSERT INTO kept VALUES (1)")
	start := time.Now()
	replica, err := p.Replicate(p.Addr, true)
	require.NoError(t, err)
	t.Logf("it follows after %s", time.Since(start))
	write(p, "INSERT INTO kept VALUES (2)")
	second := replica.(*Postgres)
	if err := second.exec(t.Context(), "shop", "INSERT INTO kept VALUES (3)"); err == nil {
		t.Error("a replica takes writes")
	}
	require.NoError(t, p.Kill())
	start = time.Now()
	require.NoError(t, replica.Promote())
	t.Logf("promoted after %s", time.Since(start))
	write(second, "INSERT INTO kept VALUES (3)")
	if all, err := second.ask(t.Context(), "SELECT sum(n) = 6 FROM kept"); err != nil || !all {
		t.Errorf("the promoted replica has not all: %v", err)
	}
	expect.NoError(t, p.Remove())
	expect.ErrorIs(t, expect.ErrorOf(os.Stat(p.in.path)), os.ErrNotExist, "the first server's folder")
}
